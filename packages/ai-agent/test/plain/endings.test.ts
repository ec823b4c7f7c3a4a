/** However a prompt ends, there is a text to show, it is in the log, and the conversation can go on from it. */
import { metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { turnsOf } from '../../src/history/model-messages.ts'
import { historyProblems } from '../../src/history/check.ts'
import type { ModelErrorClass } from '@sandlot/shared/chat/reasons'
import { ModelError } from '../../src/model/model.ts'
import { createHttpModel } from '../../src/model/http-model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { plainTool } from '../../src/plain/plain-tool.ts'
import { type RunOptions, type RunResult, runAgent } from '../../src/plain/run-agent.ts'
import { deltaChunk, sse, startFakeProvider, textAnswer } from '../support/fake-provider.ts'
import { type ScriptedAnswer, scriptedModel } from '../support/scripted-model.ts'

const look = plainTool({
  name: 'look',
  description: 'For tests.',
  parameters: { type: 'object', properties: {} },
  readOnly: true,
  execute: () => 'seen',
})
const calls = (place: number) => ({
  calls: [{ id: `c${place}`, name: 'look', args: { place } }],
})
const fails = (errorClass: ModelErrorClass): ScriptedAnswer => {
  return () => {
    throw new ModelError(errorClass, 'It did not work.', { retryable: false })
  }
}

async function finish(options: RunOptions): Promise<RunResult> {
  const run = runAgent(options)
  let step = await run.next()
  while (step.done !== true) step = await run.next()
  return step.value
}

test.each<[RunResult['reason'], string, (place: number) => ScriptedAnswer, Partial<RunOptions>]>([
  ['completed', 'nothing but silence', () => ({}), {}],
  ['completed', 'calls, then silence', (place) => (place === 0 ? calls(0) : {}), {}],
  ['completed', 'only thoughts', () => ({ thought: 'Hm.' }), {}],
  ['length', 'its limit of tokens, before a word', () => ({ finish: 'length' }), {}],
  ['refusal', 'its provider’s filter', () => ({ finish: 'content_filter' }), {}],
  ['max_turns', 'calls without end', calls, { maxTurns: 3 }],
  ['loop', 'the same call without end', () => calls(1), {}],
  ['budget', 'its calls are used up', calls, { budgets: { calls: 2 } }],
  ['budget', 'its tokens are used up', calls, { budgets: { tokens: 20 } }],
  ['budget', 'nobody knows what it cost', calls, { budgets: { cost: 1 } }],
  ['error', 'a wrong key, at once', () => fails('auth'), {}],
  ['error', 'a wrong key, behind a call', (place) => (place === 0 ? calls(0) : fails('auth')), {}],
  ['error', 'a full window that nothing mends', () => fails('context_overflow'), {}],
  [
    'error',
    'a defect of the client',
    () => () => {
      throw new TypeError('x')
    },
    {},
  ],
  ['cancelled', 'a Stop', calls, { signal: AbortSignal.abort('cancelled') }],
])('guaranteed answer: %s, %s', async (reason, _, answers, more) => {
  const log = memoryLog()
  const options = { tools: [look], log, system: 's' }
  const result = await finish({ ...options, ...more, model: scriptedModel(answers), prompt: 'go' })
  expect(result.reason).toBe(reason)
  expect(result.text.trim()).not.toBe('')
  const end = (await log.read()).map(sandlotEventOf).findLast((event) => event?.type === 'prompt_ended')
  expect(end).toMatchObject({ reason, text: result.text })

  const next = scriptedModel([{ text: 'Yes.' }])
  await finish({ ...options, model: next, prompt: 'And now?' })
  const [request] = next.requests
  expect(historyProblems(request?.messages ?? [])).toEqual([])
  expect(request?.messages.at(-2)).toMatchObject({ role: 'assistant', content: result.text })
  expect(request?.messages.at(-1)).toEqual({ role: 'user', content: 'And now?' })
})

test('property: the text of every turn is kept with it, and the prompt’s answer is that of the last', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string(), { maxLength: 5 }), async (texts) => {
      const log = memoryLog()
      const model = scriptedModel([
        ...texts.map((text, place) => ({ text, ...calls(place) })),
        { text: 'The answer.' },
      ])
      const { promptId, text } = await finish({ model, tools: [look], log, prompt: 'go' })
      expect(text).toBe('The answer.')
      const turns = turnsOf(await log.read(), promptId)
      expect(turns.map((turn) => turn.text)).toEqual([...texts, 'The answer.'])
    }),
    { numRuns: 40 },
  )
})

test('a call whose arguments are whole does not run before the whole message is', async () => {
  let ran = 0
  const write = plainTool({
    name: 'write',
    description: 'For tests.',
    parameters: { type: 'object', properties: {} },
    execute: () => `${++ran}`,
  })
  const piece = (index: number, name: string): string =>
    sse(deltaChunk({ tool_calls: [{ index, id: `c${index}`, function: { name, arguments: '{}' } }] }))
  const provider = await startFakeProvider([
    // Two whole calls and a word behind them; then the connection breaks.
    {
      steps: [piece(0, 'write'), piece(1, 'write'), sse(deltaChunk({ content: 'Wait' })), { delayMs: 50 }],
      after: 'destroy',
    },
    textAnswer('Never mind.'),
  ])
  const model = createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'fake' })
  const log = memoryLog()
  const retry = { attempts: 2, baseMs: 1, capMs: 1, longestWaitMs: 1 }
  expect(await finish({ model, tools: [write], log, prompt: 'go', retry })).toMatchObject({
    reason: 'completed',
    text: 'Never mind.',
  })
  expect(ran).toBe(0)
  const events = await log.read()
  expect(events.some(({ sessionUpdate }) => sessionUpdate === 'tool_call')).toBe(false)
  const withdrawn = events.filter((event) => sandlotEventOf(event)?.type === 'message_withdrawn')
  expect(withdrawn.map((event) => metaOf(event).turn)).toEqual([1])
  await provider.close()
})
