import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createPoolTarget } from '../../src/controller/pool-target.ts'

type PoolTarget = ReturnType<typeof createPoolTarget>

const LEAST = 2
const MOST = 32
const REFILL_MS = 1_000
const HOUR_MS = 3_600_000
/** Longer than any refill here takes: claims so far apart never fall into one. */
const APART_MS = 60_000

const bounded = (wanted: number): number => Math.min(MOST, Math.max(LEAST, wanted))

/** An `auto` target on a clock that stands still until it is put on. */
function automatic(): PoolTarget & { pass: (ms: number) => void; ask: (times: number) => void } {
  let now = 0
  const target = createPoolTarget('auto', REFILL_MS, () => now)
  return {
    ...target,
    pass: (ms) => void (now += ms),
    ask: (times) => {
      for (let n = 0; n < times; n++) target.asked()
    },
  }
}

test('a number is the target, whatever is asked for', () => {
  for (const size of [0, 1, 100]) {
    const target = createPoolTarget(size, REFILL_MS)
    for (let n = 0; n < 50; n++) target.asked()
    expect(target.current()).toBe(size)
  }
})

test('property: the 95th percentile of the claims within one refill of each', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(0, 0, 1, 100, 700, 900, 2_000, 30_000, 400_000), { maxLength: 80 }),
      (gaps) => {
        const target = automatic()
        const times: number[] = []
        let now = 0
        for (const gap of gaps) {
          target.pass(gap)
          now += gap
          target.ask(1)
          times.push(now)
        }
        // The refill that nobody has measured yet is taken to last a second.
        const recent = times.filter((at) => at > now - HOUR_MS)
        const counts = recent
          .map((start) => recent.filter((at) => at >= start && at < start + 1_000 + REFILL_MS).length)
          .toSorted((a, b) => a - b)
        expect(target.current()).toBe(bounded(counts[Math.ceil(counts.length * 0.95) - 1] ?? 0))
      },
    ),
  )
})

test('very many claims are each looked at once, and those of more than an hour ago not kept', () => {
  const target = automatic()
  for (let n = 0; n < 100_000; n++) {
    target.ask(1)
    target.pass(10)
  }
  expect(target.current()).toBe(MOST)
}, 5_000)

test('property: never below two, never above the most, a whole number, after anything that may happen', () => {
  const happening = fc.oneof(
    fc.record({ ask: fc.nat(60) }),
    fc.record({ pass: fc.nat(HOUR_MS) }),
    fc.record({ made: fc.nat(300_000) }),
  )
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 40 }), (happenings) => {
      const target = automatic()
      for (const one of happenings) {
        if ('ask' in one) target.ask(one.ask)
        else if ('pass' in one) target.pass(one.pass)
        else target.made(one.made)
        expect(target.current()).toBeGreaterThanOrEqual(LEAST)
        expect(target.current()).toBeLessThanOrEqual(MOST)
        expect(Number.isInteger(target.current())).toBe(true)
      }
    }),
  )
})

test('property: a rush counts as soon as it is more than a twentieth of the claims, and is forgotten after an hour', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), fc.nat(58), (rush, alone) => {
      const target = automatic()
      for (let n = 0; n < alone; n++) {
        target.ask(1)
        target.pass(APART_MS)
      }
      target.ask(rush)
      const isCommon = rush > (rush + alone) * 0.05
      expect(target.current()).toBe(bounded(isCommon ? rush : 1))
      target.pass(HOUR_MS)
      expect(target.current()).toBe(LEAST)
    }),
  )
})

test('property: the slower a sandbox is made, the more are kept for the same claims, and fewer when it is quick again', () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 2_000 }), fc.integer({ min: 2, max: 60 }), (about, seconds) => {
      const target = automatic()
      // So that no claim falls on the very end of a refill, whose length is an average and never
      // quite a number.
      const everyMs = about + Math.PI / 10
      for (let n = 0; n < 200; n++) {
        target.ask(1)
        target.pass(everyMs)
      }
      const settle = (ms: number): number => {
        for (let n = 0; n < 100; n++) target.made(ms)
        return target.current()
      }
      const quick = settle(0)
      const slow = settle(seconds * 1_000)
      // Claims that arrive while one is created, and until the next may be started.
      expect(quick).toBe(bounded(Math.ceil(REFILL_MS / everyMs)))
      expect(slow).toBe(bounded(Math.ceil((REFILL_MS + seconds * 1_000) / everyMs)))
      expect(settle(0)).toBe(quick)
    }),
  )
})
