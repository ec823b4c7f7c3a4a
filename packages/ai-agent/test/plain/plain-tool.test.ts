/** A tool from a plain function, through the loop as a program uses it. */
import { isOutcome, metaOf } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ModelCall } from '../../src/model/model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { type PlainTool, plainTool } from '../../src/plain/plain-tool.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import { scriptedModel } from '../support/scripted-model.ts'

const about = { description: 'For tests.', parameters: { type: 'object', properties: {} } }

/** The end of a call of this tool: its reason, or `completed`, and the text for the model. */
async function endOf(
  tool: Partial<PlainTool> & Pick<PlainTool, 'execute'>,
  args: unknown = {},
): Promise<string[]> {
  const calls: ModelCall[] = [
    { id: 'a', name: 'tool', args },
    { id: 'b', name: 'beside', args: {} },
  ]
  const log = memoryLog()
  const run = runAgent({
    model: scriptedModel([{ calls }, { text: 'Done.' }]),
    tools: [
      plainTool({ name: 'tool', ...about, ...tool }),
      plainTool({ name: 'beside', ...about, execute: () => 'fine' }),
    ],
    log,
    prompt: 'go',
  })
  let step = await run.next()
  while (step.done !== true) step = await run.next()
  expect(step.value).toMatchObject({ reason: 'completed', text: 'Done.' })
  const outcomes = (await log.read()).filter(isOutcome)
  expect(outcomes.map(({ toolCallId }) => toolCallId)).toEqual(['a', 'b'])
  expect(outcomes[1]?.rawOutput?.forModel).toBe('fine')
  const [outcome] = outcomes
  if (outcome === undefined) throw new Error('the call has no outcome')
  return [metaOf(outcome).reason ?? outcome.status, outcome.rawOutput?.forModel ?? '']
}
const returned = (value: unknown): Promise<string[]> => endOf({ execute: () => value })
const thrown = (value: unknown): Promise<string[]> =>
  endOf({
    execute: () => {
      throw value
    },
  })

describe('what the function returns', () => {
  test('a text is read as it is, nothing is said to be nothing, everything else is JSON', async () => {
    expect(await returned('It rains.')).toEqual(['completed', 'It rains.'])
    expect(await returned(Promise.resolve('Later.'))).toEqual(['completed', 'Later.'])
    expect(await returned(undefined)).toEqual(['completed', 'The call succeeded and returned nothing.'])
    expect(await returned(null)).toEqual(['completed', 'null'])
    expect(await returned({ city: 'Bern', mm: 4 })).toEqual([
      'completed',
      '{\n  "city": "Bern",\n  "mm": 4\n}',
    ])
    expect(await returned(['a', 'b'])).toEqual(['completed', '[\n  "a",\n  "b"\n]'])
    expect(await returned(5)).toEqual(['completed', '5'])
    expect(await returned(Buffer.from('é'))).toEqual(['completed', 'é'])
  })

  test('what is neither text nor JSON is a failed call that says so', async () => {
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    expect(await returned(circle)).toEqual(['invalid_output', expect.stringContaining('circular')])
    expect(await returned(5n)).toEqual(['invalid_output', expect.stringContaining('type bigint')])
    expect(await returned(() => 1)).toEqual(['invalid_output', expect.stringContaining('type function')])
    expect(await returned(Buffer.from([0xff, 0]))).toEqual([
      'invalid_output',
      expect.stringContaining('2 bytes that are no text'),
    ])
  })

  test('what is thrown is read, at once or later, whatever it is', async () => {
    expect(await thrown(new Error('No such city.'))).toEqual(['tool_error', 'No such city.'])
    expect(await thrown('bad')).toEqual(['tool_error', 'bad'])
    expect(await endOf({ execute: () => Promise.reject(new Error('Later.')) })).toEqual([
      'tool_error',
      'Later.',
    ])
  })

  test('property: anything at all, returned or thrown, is one outcome of that call and of no other', async () => {
    const anything = fc.anything({ withBigInt: true, withDate: true, withMap: true, withTypedArray: true })
    await fc.assert(
      fc.asyncProperty(anything, fc.boolean(), async (value, throws) => {
        await (throws ? thrown(value) : returned(value))
      }),
      { numRuns: 60 },
    )
  })
})

describe('what the function gets', () => {
  const parameters = {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } },
    required: ['city'],
    additionalProperties: false,
  }
  const asked = async (args: unknown): Promise<[string[], unknown[]]> => {
    const got: unknown[] = []
    const end = await endOf({ parameters, execute: (given) => got.push(given) }, args)
    return [end, got]
  }

  test('only arguments that fit; the model reads what does not', async () => {
    const refused = async (args: unknown, why: RegExp): Promise<void> => {
      const [end, got] = await asked(args)
      expect(end).toEqual(['invalid_arguments', expect.stringMatching(why)])
      expect(got).toEqual([])
    }
    await refused({}, /city/)
    await refused({ city: 5 }, /city/)
    await refused({ city: 'Bern', days: 0 }, /days/)
    await refused({ city: 'Bern', day: 1 }, /there is no argument "day"; did you mean days\?/)
    expect(await asked({ city: 'Bern', days: '3' })).toEqual([
      ['completed', expect.stringContaining('The argument days was text and was read as the number 3')],
      [{ city: 'Bern', days: 3 }],
    ])
  })
})

test('alternatives with null, as generators write what may be left out: null and text are read', async () => {
  const int = { type: 'integer' }
  const nothing = { type: 'null' }
  const parameters = {
    type: 'object',
    properties: {
      one: { anyOf: [int, nothing] },
      two: { type: ['integer', 'null'] },
      three: int,
      either: { anyOf: [int, { type: 'boolean' }] },
    },
    required: ['one'],
  }
  const got: unknown[] = []
  const execute = (given: unknown): number => got.push(given)
  const [end] = await endOf({ parameters, execute }, { one: '1', two: '2', three: null })
  expect(end).toBe('completed')
  await endOf({ parameters, execute }, { one: null, three: 3 })
  expect(got).toEqual([
    { one: 1, two: 2 },
    { one: null, three: 3 },
  ])
  const [guessed] = await endOf({ parameters, execute }, { one: 1, either: 'true' })
  expect(guessed).toBe('invalid_arguments')
  const [needed] = await endOf(
    { parameters: { ...parameters, required: ['three'] }, execute },
    { three: null },
  )
  expect(needed).toBe('invalid_arguments')
})

test('what a function changes in its arguments is changed neither in the log nor for the model', async () => {
  const args = { list: ['b', 'a'], more: { x: 1 } }
  const model = scriptedModel([{ calls: [{ id: 'a', name: 'tool', args }] }, { text: 'Done.' }])
  const log = memoryLog()
  const changes = plainTool({
    name: 'tool',
    ...about,
    execute: (given) => {
      ;(given['list'] as string[]).sort()
      delete given['more']
      return 'changed'
    },
  })
  const run = runAgent({ model, tools: [changes], log, prompt: 'go' })
  let step = await run.next()
  for (; step.done !== true; step = await run.next()) {
    // Nor is the log the client's own object.
    if (step.value.sessionUpdate === 'tool_call') args.more.x = 2
  }
  const said = { list: ['b', 'a'], more: { x: 1 } }
  expect(model.requests[1]?.messages.at(-2)).toMatchObject({ calls: [{ args: said }] })
  const call = (await log.read()).find((event) => event.sessionUpdate === 'tool_call')
  expect(call).toMatchObject({ rawInput: said })
})

test('a function that does not notice a Stop is left behind', async () => {
  const stop = new AbortController()
  const run = runAgent({
    model: scriptedModel([{ calls: [{ id: 'a', name: 'tool', args: {} }] }]),
    tools: [
      plainTool({
        name: 'tool',
        ...about,
        execute: () => {
          stop.abort('cancelled')
          return Promise.withResolvers<never>().promise
        },
      }),
    ],
    log: memoryLog(),
    prompt: 'go',
    signal: stop.signal,
  })
  let step = await run.next()
  while (step.done !== true) step = await run.next()
  expect(step.value.reason).toBe('cancelled')
})
