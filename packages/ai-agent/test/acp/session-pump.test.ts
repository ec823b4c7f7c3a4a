import { setImmediate as turn } from 'node:timers/promises'
import { type SessionEvent, seqOf } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SessionPump, batches } from '../../src/acp/session-pump.ts'
import { Subscribers } from '../../src/session/subscription.ts'

const event = (chars: number, seq: number): SessionEvent => ({
  sessionUpdate: 'agent_message_chunk',
  messageId: `m_${seq}`,
  content: { type: 'text', text: 'x'.repeat(chars) },
  _meta: { sandlot: { v: 1, at: 1, seq } },
})

test('every event is in one batch, in order, and no batch is longer than a message may be', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat(50), fc.nat(200_000)), { maxLength: 500 }), (sizes) => {
      const events = sizes.map((chars, index) => event(chars, index + 1))
      const made = [...batches(events)]
      expect(made.flat()).toEqual(events)
      for (const batch of made) {
        expect(batch.length).toBeGreaterThan(0)
        expect(batch.length).toBeLessThanOrEqual(200)
        if (batch.length > 1) expect(JSON.stringify(batch).length).toBeLessThan(256 * 1024)
      }
    }),
    { numRuns: 50 },
  )
})

/** The reader of a shared chat. */
const ADA = { id: 'u_ada', name: 'Ada' }
/** More waits at once than the limit of a reader in some plans. */
const LIMIT = 6
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('live' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('settled' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('turn' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('block' as const, 'free' as const) }) },
)

test('in any interleaving of events, a slow client and the end of a share: in order, nothing twice, nothing after it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.nat(60), async (plan, unsharedAt) => {
      const subscribers = new Subscribers(() => undefined, LIMIT)
      const log: SessionEvent[] = []
      const got: SessionEvent[] = []
      let blocked: PromiseWithResolvers<void> | undefined
      const tooEarlyOrLate: SessionEvent[] = []
      let live = 0
      let ended = false
      let waits = false
      const pump = new SessionPump({
        session: {
          lost: false,
          subscribe: (after) => subscribers.add(log.slice(after), log.length, false, ADA),
        },
        after: 0,
        send(events) {
          if (ended || waits) tooEarlyOrLate.push(...events)
          got.push(...events)
          waits = blocked !== undefined
          return blocked?.promise.then(() => void (waits = false))
        },
        unshared: () => (ended = true),
      })
      const through = new Map<number, boolean>()
      for (const [at, { do: what }] of plan.entries()) {
        if (at === unsharedAt) subscribers.unshare(new Set(['u_ada']))
        if (what === 'live')
          subscribers.send({ ...event(1, 1), _meta: { sandlot: { v: 1, at: ++live, live: true } } })
        else if (what === 'settled') {
          const settled = event(1, log.length + 1)
          log.push(settled)
          subscribers.send(settled)
          const seq = log.length
          void pump.sentThrough(seq).then(() => through.set(seq, ended || got.includes(settled)))
        } else if (what === 'turn') await turn()
        else if (what === 'block') blocked ??= Promise.withResolvers()
        else {
          blocked?.resolve()
          blocked = undefined
        }
      }
      blocked?.resolve()
      blocked = undefined
      await turn()
      await turn()
      expect(tooEarlyOrLate).toEqual([])
      const seqs = got.flatMap((one) => seqOf(one) ?? [])
      expect(seqs).toEqual(log.slice(0, seqs.length).map(seqOf))
      if (!ended) expect(got.filter((one) => seqOf(one) !== undefined)).toEqual(log)
      const lives = got.flatMap((one) => (seqOf(one) === undefined ? [one._meta.sandlot.at] : []))
      expect(lives).toEqual([...new Set(lives)].toSorted((one, other) => one - other))
      expect(through.size).toBe(log.length)
      expect([...through.values()]).not.toContain(false)
      pump.stop()
    }),
    { numRuns: 300 },
  )
})
