/** The join of history and live tail: whoever comes when, and however often, ends with the same log and the same screen. */
import { type SessionEvent, forReaders, isLive, metaOf, seqOf, textOf } from '@sandlot/shared/chat/events'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Session } from '../../src/session/session.ts'
import { type Subscription, SubscriptionClosed } from '../../src/session/subscription.ts'
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import { z } from 'zod'
import { extent } from '../../../../test/campaign.ts'
import { AgentBench, heldTool, newSession, whenEvent, whenIdle } from '../support/agent-fixture.ts'
import { deltaChunk, sse, textAnswer, toolCalls } from '../support/fake-provider.ts'

const SUBSCRIPTION_LIMIT = 1_000

/** A tool whose live output comes in `pieces` pieces of ten bytes. */
function chattyTool(pieces: number): Tool {
  return defineTool({
    name: 'chatty',
    description: 'Talks.',
    kind: 'other',
    input: z.strictObject({ key: z.string().describe('Its key.') }),
    readOnly: true,
    title: () => 'Chatty',
    async *execute({ key }) {
      for (let n = 0; n < pieces; n++) {
        const data = `${key}${String(n).padStart(8, '0')}\n`
        yield { type: 'output', piece: { offset: n * 10, end: n * 10 + 10, data } }
        await new Promise((resolve) => setImmediate(resolve))
      }
      return { status: 'completed', forModel: `${key} said ${pieces} lines` }
    },
  })
}

function isEnd(event: SessionEvent): boolean {
  return metaOf(event).event?.type === 'prompt_ended'
}

/** Reads like a client that is cut off after `cuts[i]` events, again and again, and resumes from the last number it has. */
async function readInPieces(session: Session, cuts: readonly number[]): Promise<SessionEvent[]> {
  const seen: SessionEvent[] = []
  let after = 0
  for (let n = 0; ; n++) {
    const limit = cuts[n] ?? Number.POSITIVE_INFINITY
    const subscription = session.subscribe(after)
    let taken = 0
    try {
      for (const event of subscription.catchUp) {
        if (taken++ >= limit) break
        seen.push(event)
        after = Math.max(after, seqOf(event) ?? 0)
        if (isEnd(event)) return seen
      }
      if (taken >= limit) continue
      for await (const event of subscription.live) {
        seen.push(event)
        after = Math.max(after, seqOf(event) ?? 0)
        if (isEnd(event)) return seen
        if (++taken >= limit) break
      }
    } finally {
      subscription.close()
    }
  }
}

/** `readInPieces`, with whatever process there is. */
async function readOverRestarts(
  current: () => Promise<Session>,
  cuts: readonly number[],
): Promise<SessionEvent[]> {
  const events: SessionEvent[] = []
  let after = 0
  for (let n = 0; ; n++) {
    const subscription = (await current()).subscribe(after)
    let left = cuts[n] ?? Number.POSITIVE_INFINITY
    try {
      for await (const event of bothOf(subscription)) {
        if (left-- <= 0) break
        events.push(event)
        after = Math.max(after, seqOf(event) ?? 0)
        if (isEnd(event)) return events
      }
    } catch (error) {
      // The process went away.
      if (!(error instanceof SubscriptionClosed)) throw error
    } finally {
      subscription.close()
    }
  }
}

async function* bothOf({ catchUp, live }: Subscription): AsyncGenerator<SessionEvent> {
  yield* catchUp
  yield* live
}

/** Resolves when so many more events have been shown, or the only prompt has ended, which may have been before this was asked. */
async function seen(session: Session, count: number): Promise<void> {
  if (session.log.some(isEnd)) return
  const subscription = session.subscribe(session.seq)
  let left = count
  for await (const event of subscription.live) if (--left <= 0 || isEnd(event)) break
  subscription.close()
}

describe('the join', () => {
  test('cut at any event and resumed: the same settled log, each number once, and the same screen', async () => {
    const script = () => [
      toolCalls(
        [
          { id: 'c1', name: 'chatty', args: { key: 'a' } },
          { id: 'c2', name: 'chatty', args: { key: 'b' } },
        ],
        { text: 'I ask both of them for many words.', pieceLength: 3, reasoning: 'Which one first?' },
      ),
      textAnswer('They said what they had to say, and here it is.', { pieceLength: 2 }),
    ]
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.nat({ max: 12 }), { maxLength: 12 }), { minLength: 1, maxLength: 4 }),
        async (readers) => {
          await using bench = await AgentBench.start(script())
          const session = await newSession(await bench.core({ tools: [chattyTool(15)] }))
          const reading = readers.map((cuts) => readInPieces(session, cuts))
          await (
            await session.prompt('go')
          ).done
          const screen = session.log.reduce(foldTranscript, emptyTranscript())
          for (const seen of await Promise.all(reading)) {
            expect(seen.filter((event) => !isLive(event))).toEqual(session.log.map(forReaders))
            expect(seen.reduce(foldTranscript, emptyTranscript())).toEqual(screen)
          }
        },
      ),
      { numRuns: 12 },
    )
  })

  test('over restarts too: readers that come, are cut off and come back see one log and one screen', async () => {
    const calls = (key: string) => [{ id: `c_${key}`, name: 'chatty', args: { key } }]
    const answers = [
      toolCalls(calls('a'), { text: 'First this.', pieceLength: 3, reasoning: 'Hm.' }),
      toolCalls(calls('b'), { text: 'Then that.', pieceLength: 3 }),
      textAnswer('Both have said what they had to say.', { pieceLength: 3 }),
    ]
    const answer = ({ body }: { body: { messages: readonly { role: string }[] } }) =>
      answers[body.messages.filter(({ role }) => role === 'assistant').length] ?? textAnswer('?')
    const cuts = fc.array(fc.nat({ max: 25 }), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(cuts, { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat({ max: 30 }), { minLength: 1, maxLength: 3 }),
        async (readers, restarts) => {
          await using bench = await AgentBench.start(Array.from({ length: 20 }, () => answer))
          let core = await bench.core({ tools: [chattyTool(8)] })
          let session = await newSession(core)
          const { id } = session
          /** Changes whenever there is another process. */
          let current = Promise.resolve(session)
          const reading = readers.map((one) => readOverRestarts(() => current, one))
          await session.prompt('go')
          for (const after of restarts) {
            await seen(session, after)
            const next = Promise.withResolvers<Session>()
            current = next.promise
            await core.leave()
            core = await bench.core({ tools: [chattyTool(8)] })
            await core.manager.resumeUnfinished()
            session = await core.manager.get('u_ada', id)
            next.resolve(session)
          }
          await whenIdle(session)
          const screen = session.log.reduce(foldTranscript, emptyTranscript())
          expect(screen.prompt).toBeNull()
          for (const events of await Promise.all(reading)) {
            expect(events.filter((event) => !isLive(event))).toEqual(session.log.map(forReaders))
            expect(events.reduce(foldTranscript, emptyTranscript())).toEqual(screen)
          }
        },
      ),
      { numRuns: extent(4, 300) },
    )
  })

  test('a late joiner gets the text so far and the last output as one live event each', async () => {
    const slow = heldTool('slow', true)
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'c1', name: 'slow', args: { key: 'k' } }]),
      {
        steps: [sse(deltaChunk({ content: 'So far ' })), sse(deltaChunk({ content: 'so good' }))],
        after: 'hang',
      },
    ])
    const session = await newSession(await bench.core({ tools: [slow.tool] }))
    const { done } = await session.prompt('go')
    await whenEvent(session, (event) => metaOf(event).output !== undefined)
    const during = session.subscribe(session.seq)
    expect(during.catchUp).toMatchObject([
      {
        toolCallId: 'c1',
        _meta: { sandlot: { live: true, output: { offset: 0, end: 12, data: 'output of k\n' } } },
      },
    ])
    during.close()
    slow.release('k')
    await whenEvent(
      session,
      (event) => event.sessionUpdate === 'agent_message_chunk' && textOf(event).endsWith('so good'),
    )
    const late = session.subscribe(session.seq)
    expect(late.catchUp).toMatchObject([
      { content: { text: 'So far so good' }, _meta: { sandlot: { live: true, offset: 0 } } },
    ])
    late.close()
    await session.cancel()
    await done
    expect(session.subscribe(session.seq).catchUp).toEqual([])
  })

  test('a reader that does not read is closed, holds up nothing, and resumes', async () => {
    const lines = SUBSCRIPTION_LIMIT + 200
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'c1', name: 'chatty', args: { key: 'a' } }]),
      textAnswer('ok'),
    ])
    const session = await newSession(await bench.core({ tools: [chattyTool(lines)] }))
    const stalled = session.subscribe(0)
    await (
      await session.prompt('go')
    ).done
    const read: SessionEvent[] = []
    const closed = async (): Promise<void> => {
      for await (const event of stalled.live) read.push(event)
    }
    await expect(closed()).rejects.toBeInstanceOf(SubscriptionClosed)
    const resumed = session.subscribe(Math.max(...read.map((event) => seqOf(event) ?? 0)))
    resumed.close()
    expect([...read, ...resumed.catchUp].filter((event) => !isLive(event))).toEqual(
      session.log.map(forReaders),
    )
  })
})
