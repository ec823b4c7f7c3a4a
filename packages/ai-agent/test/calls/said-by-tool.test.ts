/** Tools of other people, and of no types: whatever they say, the log can hold it and their siblings are not touched. */
import { sessionEvent } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, type Tool, type ToolOutcome, type ToolUpdate } from '../../src/tools/tool.ts'
import { TestBatch } from './test-batch.ts'

const call = (id: string, name: string) => ({ id, name, args: {} })

/** Says these things, whatever they are, and returns the other. */
function saying(updates: readonly unknown[], outcome: unknown): Tool {
  return defineTool({
    name: 'odd',
    description: 'For tests.',
    kind: 'other',
    input: z.strictObject({}),
    readOnly: true,
    title: () => 'Odd',
    async *execute() {
      yield* updates as ToolUpdate[]
      return outcome as ToolOutcome
    },
  })
}
const fine: Tool = {
  ...saying([], { status: 'completed', forModel: 'fine' }),
  name: 'fine',
}

const circle: Record<string, unknown> = {}
circle['self'] = circle
const deep = JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`) as unknown
const anything = fc.oneof(
  fc.anything({ withBigInt: true, withDate: true, withMap: true, withSparseArray: true }),
  fc.constantFrom(circle, deep, () => 1, Symbol('x'), 5n, undefined),
)
const someOutcome = fc.oneof(
  { weight: 1, arbitrary: anything },
  {
    weight: 4,
    arbitrary: fc.record(
      {
        status: fc.oneof(fc.constantFrom('completed', 'failed', 'pending'), anything),
        reason: fc.oneof(fc.constantFrom('denied', 'tired'), anything),
        forModel: fc.oneof(fc.string(), anything),
        data: anything,
        content: fc.oneof(fc.constant([]), fc.array(anything), anything),
        exit: fc.oneof(fc.constant({ code: 1 }), anything),
        outputInfo: fc.oneof(fc.constant(undefined), anything),
      },
      { requiredKeys: [] },
    ),
  },
)
const someUpdate = fc.oneof(
  anything,
  fc.record({
    type: fc.constantFrom('progress', 'output', 'started', 'title', 'plan', 'approval_asked', 'odd'),
    message: anything,
    piece: anything,
    title: anything,
    entries: anything,
    options: anything,
    attempt: anything,
  }),
)

test('property: whatever a tool says, its call has one outcome, its siblings theirs, and every event can be stored and read', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(someUpdate, { maxLength: 2 }), someOutcome, async (updates, outcome) => {
      const batch = new TestBatch({ tools: [saying(updates, outcome), fine] })
      const outcomes = await batch.run([call('a', 'fine'), call('b', 'odd'), call('c', 'fine')])
      expect(batch.settled().toSorted()).toEqual(['a', 'b', 'c'])
      expect([outcomes[0], outcomes[2]]).toMatchObject([{ forModel: 'fine' }, { forModel: 'fine' }])
      for (const event of batch.log) {
        const stored: unknown = JSON.parse(JSON.stringify(event))
        expect(sessionEvent.safeParse(stored).error).toBeUndefined()
      }
    }),
    { numRuns: 100 },
  )
})

test('what cannot be used ends invalid_output, and says what was wrong with it', async () => {
  const ends = async (updates: unknown[], outcome: unknown): Promise<ToolOutcome | undefined> => {
    const batch = new TestBatch({ tools: [saying(updates, outcome)] })
    return (await batch.run([call('a', 'odd')]))[0]
  }
  const failed = (why: RegExp) => ({
    status: 'failed',
    reason: 'invalid_output',
    forModel: expect.stringMatching(why) as string,
  })
  const good = { status: 'completed', forModel: 'x' }
  expect(await ends([], undefined)).toMatchObject(failed(/it is nothing/))
  expect(await ends([], { status: 'completed', forModel: { a: 1 } })).toMatchObject(failed(/forModel/))
  expect(await ends([], { status: 'failed', forModel: 'x' })).toMatchObject(failed(/nor why it failed/))
  expect(await ends([], { ...good, data: circle })).toMatchObject(failed(/not JSON: .*circular/))
  expect(await ends([], { ...good, data: deep })).toMatchObject(failed(/nested more than 100/))
  expect(await ends([], { ...good, content: 'x' })).toMatchObject(failed(/content/))
  expect(await ends([null], good)).toMatchObject(failed(/it is nothing/))
  expect(await ends([{ type: 'odd' }], good)).toMatchObject(failed(/\(: Invalid input/))
  expect(await ends([], { ...good, data: { at: new Date(0), none: undefined } })).toMatchObject({
    ...good,
    data: { at: '1970-01-01T00:00:00.000Z' },
  })
})

test('a completed call has the data that its tool declares, or ends invalid_output; a failure says what it likes', async () => {
  const ends = async (outcome: unknown, output: z.ZodType): Promise<ToolOutcome> => {
    const batch = new TestBatch({ tools: [{ ...saying([], outcome), output }] })
    return batch.call('odd', {})
  }
  const words = z.strictObject({ words: z.int(), at: z.iso.datetime().optional() })
  const said = (data?: unknown) => ({ status: 'completed', forModel: 'x', data })
  const invalid = (why: RegExp) => ({
    status: 'failed',
    reason: 'invalid_output',
    forModel: expect.stringMatching(why) as string,
  })
  const at = new Date(0)
  // Compared as JSON, which the log will hold.
  expect(await ends(said({ words: 3, at }), words)).toMatchObject({ status: 'completed', data: { words: 3 } })
  expect(await ends(said({ words: 'three' }), words)).toMatchObject(invalid(/data\.words: .*number/))
  expect(await ends(said({ words: 3, more: 1 }), words)).toMatchObject(invalid(/data: .*more/))
  expect(await ends(said(), words)).toMatchObject(invalid(/data: /))
  expect(await ends(said(), words.optional())).toMatchObject({ status: 'completed' })
  expect(
    await ends({ status: 'failed', reason: 'tool_error', forModel: 'x', data: { conflict: true } }, words),
  ).toMatchObject({ reason: 'tool_error', data: { conflict: true } })
})

test('where a tool says that it works is left out when it is no list of places', async () => {
  const odd = {
    ...saying([], { status: 'completed', forModel: 'x' }),
    title: () => ({ title: 'odd', locations: 'here' as never }),
  }
  const batch = new TestBatch({ tools: [odd] })
  expect(await batch.run([call('a', 'odd')])).toMatchObject([{ status: 'completed' }])
  expect(batch.log[0]).toMatchObject({ title: 'odd' })
  expect(JSON.stringify(batch.log[0])).not.toContain('locations')
})
