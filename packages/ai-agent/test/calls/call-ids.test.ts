/** Ids of calls on a change of model: each provider takes its own, few take those of all others. */
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { historyProblems } from '../../src/history/check.ts'
import { modelMessages } from '../../src/history/model-messages.ts'
import { ModelError, type ModelMessage } from '../../src/model/model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { plainTool } from '../../src/plain/plain-tool.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import { type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'

const look = plainTool({
  name: 'look',
  description: 'For tests.',
  parameters: { type: 'object', properties: {} },
  readOnly: true,
  execute: () => 'seen',
})

async function run(model: ScriptedModel, log = memoryLog()): Promise<readonly SessionEvent[]> {
  const running = runAgent({ model, tools: [look], log, prompt: 'go' })
  let step = await running.next()
  while (step.done !== true) step = await running.next()
  expect(step.value).toMatchObject({ reason: 'completed' })
  return log.read()
}
const callsOf = (messages: readonly ModelMessage[]): string[] =>
  messages.flatMap((message) => (message.role === 'assistant' ? message.calls.map(({ id }) => id) : []))
const resultsOf = (messages: readonly ModelMessage[]): string[] =>
  messages.flatMap((message) => (message.role === 'tool' ? [message.callId] : []))

const anyId = fc.oneof(fc.string({ maxLength: 60, minLength: 1 }), fc.constant('functions.look:0'))

test('property: its own model gets each id back as it was, another one such as every provider takes, pairs kept', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(anyId, { minLength: 1, maxLength: 6 }), async (ids) => {
      const calls = ids.map((id) => ({ id, name: 'look', args: {} }))
      const log = await run(scriptedModel([{ calls }, { text: 'Done.' }], { name: 'one' }))
      const own = modelMessages(log, 'system', { model: 'one' })
      expect(callsOf(own)).toEqual(ids)
      const other = modelMessages(log, 'system', { model: 'two' })
      for (const id of callsOf(other)) expect(id).toMatch(/^[A-Za-z0-9_-]{1,40}$/)
      expect(resultsOf(other)).toEqual(callsOf(other))
      expect(historyProblems([...other, { role: 'user', content: 'more' }])).toEqual([])
    }),
    { numRuns: 50 },
  )
})

test('a provider that refuses the ids as well gets nine letters and digits, from then on', async () => {
  const calls = [{ id: 'call_1', name: 'look', args: {} }]
  const strict = scriptedModel((place) => ({ messages }) => {
    if (place === 0) return { calls }
    if (callsOf(messages).every((id) => /^[A-Za-z0-9]{9}$/.test(id))) return { text: 'Done.' }
    throw new ModelError('invalid_history', 'Tool call id was call_1 …', { retryable: false })
  })
  const log = memoryLog()
  const events = await run(strict, log)
  const mended = events.filter((event) => sandlotEventOf(event)?.type === 'history_mended')
  expect(mended.map((event) => metaOf(event).turn)).toEqual([2])
  const before = strict.requests.length
  await run(strict, log)
  expect(strict.requests.length - before).toBe(1)
  const { messages } = strict.requests.at(-1) ?? { messages: [] }
  expect(resultsOf(messages)).toEqual(callsOf(messages))
})
