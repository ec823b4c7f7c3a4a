import { metaOf } from '@sandlot/shared/events'
import { expect, test } from 'vitest'
import { exportPrompt } from '../src/prompt-export.ts'
import { AgentBench, ask, newSession } from './agent-fixture.ts'
import { textAnswer, toolCalls } from './fake-provider.ts'

test('a prompt is one record: messages, calls, events, usage, model and end, without secrets', async () => {
  await using bench = await AgentBench.start([
    textAnswer('before'),
    toolCalls([{ id: 'c1', name: 'echo', args: { text: 'key sk-abcdefghijklmnopqrst' } }]),
    textAnswer('done', { usage: { prompt_tokens: 10, completion_tokens: 4 } }),
    textAnswer('after'),
  ])
  const session = await newSession(await bench.core())
  await ask(session, 'first')
  const { promptId } = await ask(session, 'second')
  await ask(session, 'third')
  const record = exportPrompt(session.log, promptId)
  expect(record).toMatchObject({
    version: 1,
    promptId,
    model: 'fake',
    reason: 'completed',
    // Of both answers.
    usage: { input: 20, output: 9 },
    cost: null,
    calls: [{ turn: 1, callId: 'c1', name: 'echo', status: 'completed', text: 'key [hidden]' }],
  })
  expect(record?.messages.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'user',
    'assistant',
    'tool',
    'assistant',
  ])
  expect(record?.events.every((event) => metaOf(event).promptId === promptId)).toBe(true)
  const text = JSON.stringify(record)
  expect(text).not.toContain('sk-abcdef')
  expect(text).not.toContain('third')
  expect(exportPrompt(session.log, 'p_none')).toBeUndefined()
})

test('a long text is cut, and says how much is left out', async () => {
  await using bench = await AgentBench.start([textAnswer('ok')])
  const session = await newSession(await bench.core())
  const { promptId } = await ask(session, 'x'.repeat(50_000))
  const text = JSON.stringify(exportPrompt(session.log, promptId))
  expect(text).toContain('[… 30000 more characters]')
  expect(text.length).toBeLessThan(80_000)
})
