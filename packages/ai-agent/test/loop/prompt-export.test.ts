import { createHash } from 'node:crypto'
import { metaOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { oneRunOfThree } from '../../../../test/campaign.ts'
import { AgentMetrics } from '../../src/metrics/agent-metrics.ts'
import { documentOf, exportPrompt } from '../../src/loop/prompt-export.ts'
import { AgentBench, ask, newSession } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

test('a prompt is one record: messages, calls, events, usage, model and end, without secrets', async () => {
  await using bench = await AgentBench.start([
    textAnswer('before'),
    toolCalls([{ id: 'c1', name: 'echo', args: { text: 'key sk-abcdefghijklmnopqrst' } }]),
    textAnswer('done', { usage: { prompt_tokens: 10, completion_tokens: 4 } }),
    textAnswer('after'),
  ])
  const core = await bench.core()
  const session = await newSession(core)
  await ask(session, 'first')
  const { promptId } = await ask(session, 'second')
  await ask(session, 'third')
  const record = await exportPrompt(session.log, promptId)
  expect(record).toMatchObject({
    version: 3,
    promptId,
    model: 'fake',
    reason: 'completed',
    // The sum of both answers.
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
  expect(await exportPrompt(session.log, 'p_none')).toBeUndefined()
})

test('the record and one line of the log say how long a prompt took, and nothing that was said', async () => {
  await using bench = await AgentBench.start([
    toolCalls([{ id: 'c1', name: 'echo', args: { text: 'quiet words' } }]),
    textAnswer('done', { usage: { prompt_tokens: 10, completion_tokens: 4 } }),
  ])
  const lines: { fields: Record<string, unknown>; message: string }[] = []
  const core = await bench.core({
    parts: {
      metrics: new AgentMetrics(),
      log: {
        info: (fields, message) => void lines.push({ fields, message }),
        warn: () => undefined,
      },
    },
  })
  const session = await newSession(core)
  const { promptId } = await ask(session, 'go')
  const record = await exportPrompt(session.log, promptId)
  const ended = (): typeof lines => lines.filter(({ message }) => message === 'a prompt ended')
  await expect.poll(ended).toHaveLength(1)
  const [line] = ended()
  const { firstTokenMs, continuationMs } = record?.timing ?? {}
  expect([typeof firstTokenMs, typeof continuationMs]).toEqual(['number', 'number'])
  expect(line?.fields).toMatchObject({
    event: 'prompt_ended',
    sessionId: session.id,
    promptId,
    reason: 'completed',
    turns: 2,
    firstTokenMs,
    continuationMs,
  })
  expect(JSON.stringify(line)).not.toContain('quiet words')
})

test('a long text is cut, and says how much is left out', async () => {
  await using bench = await AgentBench.start([textAnswer('ok')])
  const core = await bench.core()
  const session = await newSession(core)
  const { promptId } = await ask(session, 'x'.repeat(50_000))
  const text = JSON.stringify(await exportPrompt(session.log, promptId))
  expect(text).toContain('[… 30000 more characters]')
  expect(text.length).toBeLessThan(80_000)
})

test.each([
  ['says something and calls', toolCalls([{ id: 'c1', name: 'echo', args: {} }], { text: 'Wait.' })],
  ['only calls, and is not counted', toolCalls([{ id: 'c1', name: 'echo', args: {} }], { usage: null })],
  ['is empty, and is not counted', textAnswer('', { usage: null })],
])(
  'each answered request has the SHA-256 of the bytes that were sent, also where the answer %s',
  async (_what, answer) => {
    await using bench = await AgentBench.start([textAnswer('before'), answer, textAnswer('done')])
    const core = await bench.core()
    const session = await newSession(core)
    await ask(session, 'first')
    const { promptId } = await ask(session, 'second')
    const record = await exportPrompt(session.log, promptId)
    const sent = bench.provider.requests
      .slice(1)
      .map(({ raw }) => createHash('sha256').update(raw).digest('hex'))
    expect(new Set(sent).size).toBe(2)
    expect(record?.requests).toEqual(sent.map((body, place) => ({ turn: place + 1, body })))
  },
)

test('the document is the record, in pieces, and a long one leaves the process its other work', async ({
  skip,
}) => {
  oneRunOfThree('a long document', skip)
  const text = (n: number): string => `line ${n} `.repeat(2_400)
  const calls = Array.from({ length: 60 }, (_, n) =>
    toolCalls([{ id: `c${n}`, name: 'echo', args: { text: text(n) } }], { pieceLength: 100_000 }),
  )
  await using bench = await AgentBench.start([...calls, textAnswer('done')])
  const core = await bench.core({ parts: { maxTurns: 100 } })
  const session = await newSession(core)
  const { promptId } = await ask(session, 'go')
  let turns = 0
  const turn = (): void => {
    turns += 1
    again = setImmediate(turn)
  }
  let again = setImmediate(turn)
  const record = await exportPrompt(session.log, promptId)
  clearImmediate(again)
  expect(turns).toBeGreaterThan(1)
  if (record === undefined) throw new Error('there is no record')
  expect(record.requests).toHaveLength(61)
  let document = ''
  let pieces = 0
  for await (const piece of documentOf(record)) {
    document += piece
    pieces += 1
  }
  expect(pieces).toBeGreaterThan(3)
  expect(JSON.parse(document)).toEqual(JSON.parse(JSON.stringify(record)))
  expect(document).toBe(`${JSON.stringify(record, null, 2)}\n`)
})
