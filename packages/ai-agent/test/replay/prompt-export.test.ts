import { metaOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { oneRunOfThree } from '../../../../test/campaign.ts'
import { documentOf, exportPrompt, framesOf } from '../../src/replay/prompt-export.ts'
import { type RequestFrame, bodyOf, digestOf } from '../../src/replay/mark.ts'
import { AgentMetrics } from '../../src/metrics/agent-metrics.ts'
import type { Session } from '../../src/session/session.ts'
import { AgentBench, type Core, ask, newSession } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

type PromptExport = NonNullable<Awaited<ReturnType<typeof exportPrompt>>>

/** The bodies of a record's requests, made again from it alone. */
function bodiesOf({ requests, messages, frames }: PromptExport): string[] {
  return requests.map(({ frame, messages: own }) => {
    const known = frames[frame]
    if (known === undefined) throw new Error(`The record has no frame ${frame}.`)
    return bodyOf(typeof own === 'number' ? messages.slice(0, own) : own, known)
  })
}

async function exported(
  { store }: Core,
  { log }: Session,
  promptId: string,
): Promise<PromptExport | undefined> {
  const frames = new Map<string, RequestFrame>()
  for (const hash of framesOf(log, promptId))
    frames.set(hash, JSON.parse((await store.requestFrame(hash)) ?? 'null') as RequestFrame)
  return exportPrompt(log, promptId, frames)
}

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
  const record = await exported(core, session, promptId)
  expect(record).toMatchObject({
    version: 2,
    promptId,
    model: 'fake',
    reason: 'completed',
    // Of both answers.
    usage: { input: 20, output: 9 },
    cost: null,
    calls: [{ turn: 1, callId: 'c1', name: 'echo', status: 'completed', text: 'key [hidden]' }],
  })
  expect(record?.messages.map(({ role }) => role)).toEqual([
    'system',
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
  expect(await exportPrompt(session.log, 'p_none', new Map())).toBeUndefined()
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
  const record = await exported(core, session, promptId)
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
  const text = JSON.stringify(await exported(core, session, promptId))
  expect(text).toContain('[… 30000 more characters]')
  expect(text.length).toBeLessThan(80_000)
})

test('from the record alone every request is made again, byte for byte as it was sent', async () => {
  await using bench = await AgentBench.start([
    textAnswer('before'),
    toolCalls([
      { id: 'c1', name: 'echo', args: { text: 'one' } },
      { id: 'c2', name: 'echo', args: { text: 'two' } },
    ]),
    toolCalls([{ id: 'c3', name: 'echo', args: { text: 'three' } }]),
    textAnswer('done'),
  ])
  const core = await bench.core()
  const session = await newSession(core)
  await ask(session, 'first')
  const { promptId } = await ask(session, 'second')
  const record = await exported(core, session, promptId)
  if (record === undefined) throw new Error('there is no record')
  const passedOn = JSON.parse(JSON.stringify(record)) as PromptExport
  const bodies = bodiesOf(passedOn)
  expect(bodies).toEqual(bench.provider.requests.slice(1).map(({ raw }) => raw))
  expect(passedOn.requests.map(({ body }) => body)).toEqual(bodies.map(digestOf))
  expect(passedOn.requests).toMatchObject([
    { turn: 1, verbatim: true, messages: 4 },
    { turn: 2, verbatim: true, messages: 7 },
    { turn: 3, verbatim: true, messages: 9 },
  ])
  expect(passedOn.messages[0]).toMatchObject({
    role: 'system',
    content: expect.stringContaining('You are a test'),
  })
  const [frame] = Object.values(passedOn.frames)
  expect(frame?.tools.map(({ name }) => name)).toEqual(['echo'])
  expect(JSON.stringify(frame)).toContain('"properties"')
})

test('a secret in the system prompt, a tool’s words or a message is hidden, and the record says that it is not verbatim', async () => {
  const secret = 'sk-abcdefghijklmnopqrst'
  await using bench = await AgentBench.start([textAnswer('ok'), textAnswer('ok')])
  const core = await bench.core({ wrap: (parts) => ({ ...parts, system: `Use ${secret}.` }) })
  const session = await newSession(core)
  const { promptId } = await ask(session, 'hello')
  const record = await exported(core, session, promptId)
  expect(JSON.stringify(record)).not.toContain(secret)
  expect(record?.messages[0]).toMatchObject({ content: expect.stringContaining('Use [hidden].') })
  expect(record?.requests).toMatchObject([{ verbatim: false, messages: 2 }])
  // It was sent: what is hidden is the record's.
  expect(bench.provider.requests[0]?.raw).toContain(secret)
})

test('the document is the record, in pieces, and a long one leaves the process its other work', async ({
  skip,
}) => {
  oneRunOfThree('a long document', skip)
  const text = (n: number): string => `line ${n} `.repeat(1_200)
  const calls = Array.from({ length: 60 }, (_, n) =>
    toolCalls([{ id: `c${n}`, name: 'echo', args: { text: text(n) } }]),
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
  const record = await exported(core, session, promptId)
  clearImmediate(again)
  expect(turns).toBeGreaterThan(3)
  if (record === undefined) throw new Error('there is no record')
  expect(record.requests).toHaveLength(61)
  expect(record.requests.every(({ verbatim }) => verbatim)).toBe(true)
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
