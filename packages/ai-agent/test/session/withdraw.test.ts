/** A message that waits is taken back by its person: it is withdrawn, or the agent has read it; never both, never neither. */
import { setImmediate as turn } from 'node:timers/promises'
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { extent } from '../../../../test/campaign.ts'
import type { Session } from '../../src/session/session.ts'
import { queuedMessages, unqueued } from '../../src/history/read-log.ts'
import {
  AgentBench,
  type FlatParts,
  happened,
  heldTool,
  newSession,
  openCore,
  whenIdle,
} from '../support/agent-fixture.ts'
import { Life, during, mortal } from '../crash/life.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

const slowCall = toolCalls([{ id: 'call_a', name: 'slow', args: { key: 'a' } }])

/** The id of the message with this text, which has waited or waits. */
function idOf(session: Session, text: string): string {
  const found = happened(session.log, 'message_queued').find((message) => message.text === text)
  if (found === undefined) throw new Error(`“${text}” never waited`)
  return found.messageId
}

const asked = (bench: AgentBench): string =>
  bench.provider.requests.map(({ body }) => JSON.stringify(body.messages)).join('\n')

describe('a message that waits', () => {
  test.each(['steer', 'queue'] as const)(
    '%s: taken back, no model reads it, whoever waits for its end hears “cancelled”, also after a restart',
    async (whenBusy) => {
      const slow = heldTool('slow', true)
      await using bench = await AgentBench.start([slowCall, textAnswer('ok')])
      const core = await bench.core({ tools: [slow.tool] })
      const session = await newSession(core)
      const first = await session.prompt('go')
      await slow.whenBegun(1)
      const options = { whenBusy, requestId: 'r_2', images: [{ mimeType: 'image/png', data: 'AAAA' }] }
      const second = await session.prompt('never mind', options)
      const id = idOf(session, 'never mind')
      expect(await session.withdraw(id)).toBe('withdrawn')
      // While the other one still runs.
      const end = await second.done
      expect(end).toMatchObject({ promptId: second.promptId, stopReason: 'cancelled', reason: 'cancelled' })
      expect(end.seq).toBe(session.seq)
      expect(session.running).toBe(true)
      expect(await session.withdraw(id)).toBe('withdrawn')
      slow.release('a')
      expect(await first.done).toMatchObject({ reason: 'completed' })
      await whenIdle(session)
      expect(happened(session.log, 'message_unqueued')).toEqual([
        { type: 'message_unqueued', messageId: id, why: 'withdrawn' },
      ])
      await core.leave()

      const restarted = await bench.core()
      const again = await restarted.manager.get('u_ada', session.id)
      expect(await again.withdraw(id)).toBe('withdrawn')
      const resent = await again.prompt('never mind', options)
      expect(resent).toMatchObject({ duplicate: true, promptId: second.promptId })
      expect(await resent.done).toMatchObject({ reason: 'cancelled' })
      expect(happened(again.log, 'prompt_started')).toHaveLength(1)
      expect(asked(bench)).not.toContain('never mind')
    },
  )

  test('one that the agent has read stays read; one that never waited is not found', async () => {
    const slow = heldTool('slow', true)
    await using bench = await AgentBench.start([slowCall, textAnswer('ok'), textAnswer('yes')])
    const session = await newSession(await bench.core({ tools: [slow.tool] }))
    await session.prompt('go')
    await slow.whenBegun(1)
    const steered = await session.prompt('in blue')
    const queued = await session.prompt('and then', { whenBusy: 'queue' })
    slow.release('a')
    await Promise.all([steered.done, queued.done])
    const before = session.seq
    expect(await session.withdraw(idOf(session, 'in blue'))).toBe('sent')
    expect(await session.withdraw(idOf(session, 'and then'))).toBe('sent')
    await expect(session.withdraw('m_none')).rejects.toMatchObject({ code: 'not_found' })
    expect(session.seq).toBe(before)
  })

  test('one that a Stop left waiting goes with no later prompt', async () => {
    const slow = heldTool('slow', true)
    await using bench = await AgentBench.start([slowCall, textAnswer('ok')])
    const session = await newSession(await bench.core({ tools: [slow.tool] }))
    const first = await session.prompt('go')
    await slow.whenBegun(1)
    await session.prompt('never mind')
    await session.cancel()
    await first.done
    expect(await session.withdraw(idOf(session, 'never mind'))).toBe('withdrawn')
    await (
      await session.prompt('something else')
    ).done
    expect(asked(bench)).toContain('something else')
    expect(asked(bench)).not.toContain('never mind')
  })

  test('while the agent takes the message before it: the loop has seen it wait, and does not get it', async () => {
    const slow = heldTool('slow', true)
    const taking = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    await using bench = await AgentBench.start([slowCall, textAnswer('ok')])
    const held = (parts: FlatParts): FlatParts => {
      const { store } = parts
      const append: typeof store.log.append = async (id, events, ...more) => {
        if (events.some((event) => sandlotEventOf(event)?.type === 'message_unqueued')) {
          taking.resolve()
          await gate.promise
        }
        return store.log.append(id, events, ...more)
      }
      return { ...parts, store: { ...store, log: during(store.log, { append }, new Life()) } }
    }
    const session = await newSession(await bench.core({ tools: [slow.tool], wrap: held }))
    const first = await session.prompt('go')
    await slow.whenBegun(1)
    await session.prompt('in blue')
    await session.prompt('never mind')
    slow.release('a')
    await taking.promise
    const answers = ['in blue', 'never mind'].map((text) => session.withdraw(idOf(session, text)))
    gate.resolve()
    expect(await Promise.all(answers)).toEqual(['sent', 'withdrawn'])
    expect(await first.done).toMatchObject({ reason: 'completed' })
    expect(happened(session.log, 'message_unqueued').map(({ why }) => why)).toEqual(['sent', 'withdrawn'])
    expect(asked(bench)).toContain('in blue')
    expect(asked(bench)).not.toContain('never mind')
  })
})

// ── Any order, and a death in between ───────────────────────────────────────────────────────────────────

interface Case {
  /** `after`: it is taken back so many turns of the event loop after the tool was let go, or when all has ended. */
  messages: { as: 'steer' | 'queue'; after: number | 'all' }[]
  /** Durations of the writes, in turns of the event loop, in a cycle. */
  writes: number[]
  /** The end of the first life. */
  endsAt: number | undefined
}

const anyCase: fc.Arbitrary<Case> = fc.record({
  messages: fc.array(
    fc.record({
      as: fc.constantFrom('steer', 'queue'),
      after: fc.oneof(fc.constantFrom(0, 'all' as const), fc.integer({ min: 1, max: 16 })),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  writes: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 8 }),
  endsAt: fc.option(fc.integer({ min: 8, max: 60 }), { nil: undefined }),
})

const turns = async (count: number): Promise<void> => {
  for (let n = 0; n < count; n++) await turn()
}

function slowly(parts: FlatParts, writes: readonly number[]): FlatParts {
  const { store } = parts
  let written = 0
  const append: typeof store.log.append = async (...args) => {
    await turns(writes[written++ % writes.length] ?? 0)
    return store.log.append(...args)
  }
  return { ...parts, store: { ...store, log: during(store.log, { append }, new Life()) } }
}

test(
  'property: withdrawn or read, as it was answered, in any order and over a death',
  { timeout: 120_000 },
  async () => {
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(anyCase, async ({ messages, writes, endsAt }) => {
        const answer = ({ body }: { body: { messages: readonly { role: string }[] } }) =>
          body.messages.some(({ role }) => role === 'tool') ? textAnswer('ok') : slowCall
        await using bench = await AgentBench.start(Array.from({ length: 20 }, () => answer))
        const slow = heldTool('slow', true)
        const told = new Map<string, string[]>(messages.map((_, n) => [`message ${n}!`, []]))

        const play = async (session: Session, wait: boolean): Promise<Promise<unknown>[]> => {
          const ends = [await session.prompt('go', { requestId: 'r' })]
          if (wait) await slow.whenBegun(1)
          for (const [n, { as }] of messages.entries())
            ends.push(await session.prompt(`message ${n}!`, { whenBusy: as, requestId: `r_${n}` }))
          slow.release('a')
          await Promise.all(
            messages.map(async ({ after }, n) => {
              if (after === 'all') await Promise.all(ends.map(({ done }) => done))
              else if (wait) await turns(after)
              const text = `message ${n}!`
              // After a death with the prompt at its end, what was not stored then is a prompt like any other.
              const waited = happened(session.log, 'message_queued').some((message) => message.text === text)
              if (waited) told.get(text)?.push(await session.withdraw(idOf(session, text)))
            }),
          )
          return ends.map(({ done }) => done)
        }
        const live = async (life: Life, wait: boolean): Promise<SessionEvent[] | undefined> => {
          const core = await openCore(bench.folder, bench.provider, {
            tools: [slow.tool],
            wrap: (parts) => mortal(slowly(parts, writes), life),
          })
          const work = (async () => {
            await core.manager.resumeUnfinished()
            const known = await core.store.sessions.get('s_1')
            const session =
              known === undefined
                ? await core.manager.create({ userId: 'u_ada', cwd: '/', mode: 'yolo', sessionId: 's_1' })
                : await core.manager.get('u_ada', 's_1')
            await Promise.all(await play(session, wait))
            await whenIdle(session)
            return [...session.log]
          })()
          void Promise.allSettled([work])
          const log = await Promise.race([life.ended.then(() => undefined), work])
          await (log === undefined ? core.store.close() : core.leave())
          return log
        }
        const log = (await live(new Life(endsAt), true)) ?? (await live(new Life(), false)) ?? []

        expect(queuedMessages(log)).toEqual([])
        const read = log.flatMap((event) =>
          event.sessionUpdate === 'user_message_chunk' ? [event.messageId] : [],
        )
        const started = log.flatMap((event) =>
          sandlotEventOf(event)?.type === 'prompt_started' ? [metaOf(event).promptId] : [],
        )
        for (const { messageId, text } of happened(log, 'message_queued')) {
          const ways = happened(log, 'message_unqueued').filter((event) => event.messageId === messageId)
          expect(ways).toHaveLength(1)
          const { why, promptId } = unqueued(log, messageId) ?? {}
          seen.add(String(why))
          for (const answered of told.get(text) ?? []) expect(answered).toBe(why)
          expect(read.filter((id) => id === messageId)).toHaveLength(why === 'sent' ? 1 : 0)
          expect(asked(bench).includes(text)).toBe(why === 'sent')
          if (why === 'withdrawn') expect(started).not.toContain(promptId)
        }
      }),
      { numRuns: extent(40, 1_000) },
    )
    // Else the cases do not meet the race.
    expect([...seen].toSorted()).toEqual(['sent', 'withdrawn'])
  },
)
