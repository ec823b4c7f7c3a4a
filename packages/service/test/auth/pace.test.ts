import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Pace } from '../../src/auth/pace.ts'

const EVERY = 10
const BURST = 5
const LONGEST = 100

const step = fc.record({
  after: fc.integer({ min: 0, max: 60 }),
  cost: fc.integer({ min: 1, max: 4 }),
  first: fc.boolean(),
})

test('no stretch of time has more than a burst and what it refills; what passes first only spares itself the wait', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 200 }), (steps) => {
      let now = 0
      const pace = new Pace({ everyMs: EVERY, burst: BURST, now: () => now })
      const granted: { at: number; begins: number; cost: number; first: boolean }[] = []
      for (const { after, cost, first } of steps) {
        now += after
        const turn = pace.reserve('ann', { cost, longestMs: LONGEST, aheadMs: first ? LONGEST : 0 })
        if (!('refused' in turn)) {
          expect(turn.waitMs).toBeLessThanOrEqual(LONGEST)
          granted.push({ at: now, begins: now + turn.waitMs, cost, first })
          continue
        }
        // Nothing was reserved: that much later it passes, and no sooner.
        const retry = { cost, longestMs: LONGEST + turn.retryMs - 1, aheadMs: first ? LONGEST : 0 }
        expect(pace.reserve('ann', retry)).toEqual({ refused: true, retryMs: 1 })
      }
      for (const [index, from] of granted.entries()) {
        let cost = 0
        for (const to of granted.slice(index)) {
          cost += to.cost
          const most = BURST + (to.begins - from.at) / EVERY + (to.first ? LONGEST / EVERY : 0)
          expect(cost).toBeLessThanOrEqual(most + 1e-9)
        }
      }
      const usual = granted.filter(({ first }) => !first).map(({ begins }) => begins)
      expect(usual).toEqual(usual.toSorted((a, b) => a - b))
      expect(pace.reserve('bob', { cost: BURST, longestMs: 0 })).toEqual({ waitMs: 0 })
    }),
  )
})
