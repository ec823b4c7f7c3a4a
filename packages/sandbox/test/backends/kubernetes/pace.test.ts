import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { StreamPace } from '../../../src/backends/kubernetes/pace.ts'

const KiB = 1024
const RATE = 2_000_000
const BURST = RATE
/** Allowed to each sandbox beyond its limit, in requests of at most 4 KiB. */
const SMALL = 32 * KiB

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

interface Passed {
  sandbox: string
  bytes: number
  at: number
}

/** Requests without end, each as soon as the one before has passed. Returns the bytes so far. */
function hungry(pace: StreamPace, sandbox: string, size: () => number): () => number {
  const stream = pace.open(sandbox)
  let passed = 0
  const next = (): void => {
    const bytes = size()
    stream.request(bytes, () => {
      passed += bytes
      next()
    })
  }
  next()
  return () => passed
}

function mostInAnyWindow(passed: Passed[], rate: number, burst: number): number {
  let most = -Infinity
  for (const [first, { at: from }] of passed.entries()) {
    let bytes = 0
    for (const { bytes: more, at } of passed.slice(first)) {
      bytes += more
      most = Math.max(most, bytes - (burst + (rate * (at - from)) / 1_000))
    }
  }
  return most
}

test('in no time more than its rate and burst pass, for a sandbox and for all, and everything passes', () => {
  const asked = fc.record({
    sandbox: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    bytes: fc.integer({ min: 1, max: 1_000_000 }),
    gap: fc.integer({ min: 0, max: 200 }),
  })
  fc.assert(
    fc.property(fc.array(asked, { minLength: 1, maxLength: 80 }), (requests) => {
      const pace = new StreamPace(RATE)
      const passed: Passed[] = []
      for (const { sandbox, bytes, gap } of requests) {
        vi.advanceTimersByTime(gap)
        pace.open(sandbox).request(bytes, () => passed.push({ sandbox, bytes, at: performance.now() }))
      }
      vi.advanceTimersByTime(60_000)
      expect(passed).toHaveLength(requests.length)
      const of = Object.values(Object.groupBy(passed, ({ sandbox }) => sandbox))
      const small = (seconds: number): number => SMALL * (1 + seconds)
      for (const one of of)
        expect(mostInAnyWindow(one ?? [], RATE + SMALL, BURST + small(0))).toBeLessThanOrEqual(1)
      expect(
        mostInAnyWindow(passed, 4 * RATE + of.length * SMALL, 4 * BURST + of.length * small(0)),
      ).toBeLessThanOrEqual(1)
    }),
    { numRuns: 40 },
  )
})

test('those that want more than there is get equal parts, whatever the sizes, and nothing is left unused', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 5, max: 12 }),
      fc.infiniteStream(fc.integer({ min: 5 * KiB, max: 64 * KiB })),
      (count, sizes) => {
        const pace = new StreamPace(RATE)
        const from = performance.now()
        const all = Array.from({ length: count }, (_, i) =>
          hungry(pace, `s${i}`, () => sizes.next().value ?? KiB),
        )
        // Before that the bursts are used up, of which each has one of its own.
        vi.advanceTimersByTime(3_000)
        const before = all.map((bytes) => bytes())
        vi.advanceTimersByTime(2_000)
        const parts = all.map((bytes, i) => bytes() - (before[i] ?? 0))
        expect(Math.max(...parts) - Math.min(...parts)).toBeLessThanOrEqual(2 * 64 * KiB)
        const total = all.reduce((sum, bytes) => sum + bytes(), 0)
        const allowed = 4 * BURST + (4 * RATE * (performance.now() - from)) / 1_000
        expect(total).toBeLessThanOrEqual(allowed)
        expect(total).toBeGreaterThan(allowed - 64 * KiB)
      },
    ),
    { numRuns: 4 },
  )
})

test('a sandbox alone gets its own rate, also while others rest', () => {
  const pace = new StreamPace(RATE)
  for (const name of ['b', 'c', 'd']) pace.open(name).request(100, () => {})
  const bytes = hungry(pace, 'a', () => 32 * KiB)
  expect(bytes()).toBeGreaterThan(BURST - 32 * KiB)
  vi.advanceTimersByTime(10_000)
  expect(bytes()).toBeLessThanOrEqual(BURST + 10 * RATE)
  expect(bytes()).toBeGreaterThan(BURST + 10 * RATE - 64 * KiB)
})

test('a command of somebody else is not delayed by ten that print without end', () => {
  const pace = new StreamPace(RATE)
  for (let i = 0; i < 10; i += 1) hungry(pace, `yes${i}`, () => 32 * KiB)
  vi.advanceTimersByTime(5_000)
  const stream = pace.open('other')
  const keys = vi.fn<() => void>()
  for (let i = 0; i < 20; i += 1) stream.request(200, keys)
  expect(keys).toHaveBeenCalledTimes(20)
  const listing = vi.fn<() => void>()
  for (let i = 0; i < 4; i += 1) stream.request(32 * KiB, listing)
  // The time in which the agent may send them.
  vi.advanceTimersByTime(Math.ceil((5 * 32 * KiB * 1_000) / (4 * RATE)))
  expect(listing).toHaveBeenCalledTimes(4)
})

test('a key press passes while its own sandbox is over its limit', () => {
  const pace = new StreamPace(RATE)
  hungry(pace, 'a', () => 32 * KiB)
  const key = vi.fn<() => void>()
  pace.open('a').request(100, key)
  expect(key).toHaveBeenCalledOnce()
})

test('small requests do not get round the limit', () => {
  const pace = new StreamPace(RATE)
  const bytes = hungry(pace, 'a', () => 1_000)
  vi.advanceTimersByTime(10_000)
  expect(bytes()).toBeLessThanOrEqual(BURST + 10 * RATE + 11 * SMALL)
})

test('a stream that is closed and opened again has no new burst', () => {
  const pace = new StreamPace(RATE)
  let passed = 0
  for (let i = 0; i < 50; i += 1) {
    const stream = pace.open('a')
    for (let j = 0; j < 10; j += 1) stream.request(100 * KiB, () => (passed += 100 * KiB))
    stream.close()
  }
  expect(passed).toBeLessThanOrEqual(BURST)
  vi.advanceTimersByTime(10_000)
  expect(passed).toBeLessThanOrEqual(BURST)
})

test('requests of a closed stream are dropped, and those of others pass', () => {
  const pace = new StreamPace(RATE)
  const [first, second] = [pace.open('a'), pace.open('a')]
  first.request(KiB * KiB, () => {})
  const dropped = vi.fn<() => void>()
  const passed = vi.fn<() => void>()
  for (let i = 0; i < 5; i += 1) first.request(KiB * KiB, dropped)
  second.request(100 * KiB, passed)
  first.close()
  vi.advanceTimersByTime(1_000)
  expect(passed).toHaveBeenCalledOnce()
  expect(dropped).not.toHaveBeenCalled()
})

test('a limit below the size of a message still lets messages pass', () => {
  const bytes = hungry(new StreamPace(1_000), 'a', () => 64 * KiB)
  const before = bytes()
  vi.advanceTimersByTime(200_000)
  expect(bytes() - before).toBeGreaterThan(100_000)
})
