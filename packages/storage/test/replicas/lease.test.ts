/** The lease of a replica, whatever the order of its main thread, its heartbeats, the database and others. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { campaign, extent } from '../../../../test/campaign.ts'
import { Lease } from '../../src/replicas/lease.ts'
import { LIVING_MS } from '../../src/replicas/replicas.ts'

const STALE_MS = 6_000
const ACTS = ['send', 'arrive', 'answer', 'drop', 'handle', 'handle', 'take'] as const

test('while it is valid no other replica owns a user that the main thread holds', () => {
  const wait = fc.constantFrom(10, 500, 2_000, 5_900, 8_000)
  const acts = fc.array(fc.oneof(fc.constantFrom(...ACTS), wait), { minLength: 10, maxLength: 60 })
  fc.assert(
    fc.property(acts, (all) => {
      let now = 1_000
      let heartbeatAt = now
      let owner = 'us'
      let holds = true
      let beat: { at: number; owned?: boolean } | undefined
      const reports: { at: number; owned: boolean }[] = []
      const lease = new Lease(STALE_MS)
      lease.renew(now)
      for (const act of all) {
        if (typeof act === 'number') now += act
        if (act === 'send') beat ??= { at: now }
        if (act === 'arrive' && beat !== undefined && beat.owned === undefined) {
          heartbeatAt = now
          beat.owned = owner === 'us'
        }
        if (act === 'answer' && beat?.owned !== undefined) {
          lease.extend(beat.at, now)
          reports.push({ at: beat.at, owned: beat.owned })
          beat = undefined
        }
        if (act === 'drop') beat = undefined
        const report = act === 'handle' ? reports.shift() : undefined
        if (report !== undefined) {
          holds &&= report.owned
          lease.renew(report.at)
        }
        if (act === 'take' && heartbeatAt < now - LIVING_MS) owner = 'other'
        if (holds && lease.isValid(now)) expect(owner).toBe('us')
      }
    }),
    { numRuns: extent(2_000, 100_000), seed: campaign.seed },
  )
})

test('it is extended while valid, and renewed only by the main thread afterwards', () => {
  const lease = new Lease(STALE_MS)
  lease.renew(1_000)
  const shared = new Lease(STALE_MS, lease.cells)
  shared.extend(3_000, 3_010)
  expect([lease.isValid(9_000), lease.isValid(9_001)]).toEqual([true, false])
  shared.extend(9_500, 9_510)
  expect(lease.isValid(9_510)).toBe(false)
  lease.renew(9_500)
  lease.renew(8_000)
  expect(shared.isValid(15_500)).toBe(true)
  lease.turned(20_000)
  expect(shared.silence(30_000)).toBe(10_000)
})
