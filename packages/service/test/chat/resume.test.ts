/** A stream of `POST /api/chat` that broke off, over the real agent: what comes after the cut is exactly the rest. */
import { metaOf, sandlotEventOf, seqOf, type SessionEvent } from '@sandlot/shared/chat/events'
import { serverFrame, type ServerFrame } from '@sandlot/shared/chat/frames'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Scripted, textAnswer, toolCalls } from '../../../ai-agent/test/support/fake-provider.ts'
import { addUser, type Browser, makeKey, setUp } from '../support/harness.ts'
import { withRealAgent } from '../support/with-real-agent.ts'

let real: Awaited<ReturnType<typeof withRealAgent>>
let ann: Browser
let authorization: string

beforeAll(async () => {
  real = await withRealAgent()
  ann = await setUp(real.harness)
  authorization = `Bearer ${await makeKey(ann)}`
}, 120_000)
afterAll(() => real.close())

interface Message {
  id: number | undefined
  frame: ServerFrame
}

async function open(
  body: object,
  lastEventId?: number,
  key = authorization,
): Promise<AsyncGenerator<Message>> {
  const response = await fetch(`${real.harness.service.url}/api/chat`, {
    method: 'POST',
    headers: {
      authorization: key,
      accept: 'text/event-stream',
      'content-type': 'application/json',
      ...(lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) }),
    },
    body: JSON.stringify(body),
  })
  return messagesOf(response)
}

/** Messages of an SSE body. A reader that returns early closes the connection. */
async function* messagesOf(response: Response): AsyncGenerator<Message> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1]
      const data = field('data')
      if (data === undefined) continue
      const id = field('id')
      yield { id: id === undefined ? undefined : Number(id), frame: serverFrame.parse(JSON.parse(data)) }
    }
  }
}

/** Settled events, and the frames around them. */
interface Stream {
  settled: SessionEvent[]
  around: string[]
}

async function readAll(messages: AsyncIterable<Message>): Promise<Stream> {
  const stream: Stream = { settled: [], around: [] }
  for await (const { id, frame } of messages) {
    if (frame.type !== 'ai_chat_event') stream.around.push(frame.type)
    else if (id !== undefined) stream.settled.push(frame.event)
  }
  return stream
}

const seqsOf = (events: readonly SessionEvent[]): number[] => events.flatMap((event) => seqOf(event) ?? [])
const plan = (id: string): Scripted =>
  toolCalls(
    [{ id, name: 'update_plan', args: { entries: [{ content: id, status: 'pending', priority: 'low' }] } }],
    {
      text: `Step ${id}.`,
    },
  )
const SCRIPT: Scripted[] = [plan('one'), plan('two'), textAnswer('All is done, in several pieces.')]
const body = (requestId: string) => ({ message: 'plan it', requestId })

test('after the prompt is over, a cut at any event gets exactly the rest, whatever came later', async () => {
  real.provider.add(...SCRIPT)
  const whole = await readAll(await open(body('over')))
  expect(whole.around).toEqual(['ai_chat_accepted', 'ai_chat_done'])
  expect(whole.settled.length).toBeGreaterThan(8)
  expect(
    metaOf(whole.settled.find((event) => event.sessionUpdate === 'user_message_chunk') as never).author,
  ).toBeDefined()
  const [first] = whole.settled
  const sessionId =
    ((await (await ann.get('/api/sessions')).json()) as { sessions: { sessionId: string }[] }).sessions[0]
      ?.sessionId ?? ''
  expect(first).toBeDefined()
  // Later than the stream: another prompt, and a name, which belongs to none.
  real.provider.add(textAnswer('Later.'))
  await readAll(await open({ message: 'more', sessionId }))
  expect((await ann.patch(`/api/sessions/${sessionId}`, { title: 'Another name' })).status).toBeLessThan(300)

  for (const cut of [undefined, 0, ...seqsOf(whole.settled), 10_000]) {
    const rest = await readAll(await open(body('over'), cut))
    expect(rest.around).toEqual(['ai_chat_accepted', 'ai_chat_done'])
    expect(rest.settled).toEqual(whole.settled.filter((event) => (seqOf(event) ?? 0) > (cut ?? 0)))
  }
})

/** Until the calls have ended and the model is asked again, or to this number. */
async function readTo(messages: AsyncIterable<Message>, most: number): Promise<SessionEvent[]> {
  const read: SessionEvent[] = []
  for await (const { id, frame } of messages) {
    if (frame.type !== 'ai_chat_event' || id === undefined) continue
    read.push(frame.event)
    if (id >= most || sandlotEventOf(frame.event)?.type === 'turn_ended') break
  }
  return read
}

test('while the prompt runs, what was read before a cut and what comes after it are the whole', async () => {
  let last = Infinity
  for (let cut = 1; cut <= last; cut++) {
    const gate = Promise.withResolvers<void>()
    real.provider.add(plan('one'), async () => {
      await gate.promise
      return textAnswer('All is done.')
    })
    const read = await readTo(await open(body(`cut ${cut}`)), last === Infinity ? last : cut)
    const upTo = seqOf(read.at(-1) as SessionEvent) ?? 0
    if (last === Infinity) last = upTo
    const resumed = await open(body(`cut ${cut}`), upTo)
    gate.resolve()
    const rest = await readAll(resumed)
    expect(rest.around).toEqual(['ai_chat_accepted', 'ai_chat_done'])
    const all = seqsOf([...read, ...rest.settled])
    expect(all).toEqual(all.map((_, n) => (all[0] ?? 0) + n))
    expect(sandlotEventOf(rest.settled.at(-1) as SessionEvent)?.type).toBe('prompt_ended')
  }
  expect(last).toBeGreaterThan(5)
})

test('who takes part resumes their own stream, and the same id of the owner is another prompt', async () => {
  const bob = await addUser(real.harness, ann, 'bob@example.org')
  const his = `Bearer ${await makeKey(bob)}`
  const { id } = (await (await bob.get('/api/me')).json()) as { id: string }
  real.provider.add(textAnswer('For Ann.'))
  const owners = await readAll(await open({ message: 'one', requestId: 'same', sessionId: 'shared' }))
  const share = { kind: 'person', access: 'take_part', mode: 'yolo', mayApprove: false, expiresAt: null }
  expect((await ann.post('/api/sessions/shared/shares', { ...share, targetId: id })).status).toBe(201)
  real.provider.add(textAnswer('For Bob.'))
  const guests = await readAll(
    await open({ message: 'two', requestId: 'same', sessionId: 'shared' }, undefined, his),
  )
  const [first] = seqsOf(guests.settled)
  for (const [key, stream] of [
    [authorization, owners],
    [his, guests],
  ] as const)
    for (const cut of seqsOf(stream.settled)) {
      const rest = await readAll(
        await open({ message: 'x', requestId: 'same', sessionId: 'shared' }, cut, key),
      )
      expect(rest.settled).toEqual(stream.settled.filter((event) => (seqOf(event) ?? 0) > cut))
    }
  expect(first).toBeGreaterThan(seqsOf(owners.settled).at(-1) ?? 0)
})
