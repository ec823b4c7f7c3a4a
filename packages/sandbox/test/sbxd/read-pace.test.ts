import fc from 'fast-check'
import { expect, test } from 'vitest'

import { ReadPace } from '../../src/sbxd/read-pace.ts'

const KiB = 1024

/** Which of these reads would have been followed by a rest. */
function rests(reads: readonly { bytes: number; at: number }[]): boolean[] {
  const pace = new ReadPace()
  return reads.map(({ bytes, at }) => pace.restsAfter(bytes, at))
}

test('pauses in a flood, after reads that bring little', () => {
  const flood = Array.from({ length: 64 }, (_, i) => ({ bytes: 32 * KiB, at: i * 0.1 }))
  expect(rests(flood).slice(16)).toEqual(Array(48).fill(true))
})

test('continues at once after a long read', () => {
  const flood = Array.from({ length: 64 }, (_, i) => ({ bytes: 128 * KiB, at: i * 0.4 }))
  expect(rests(flood)).not.toContain(true)
})

test('a flood that is over is forgotten', () => {
  const flood = Array.from({ length: 32 }, (_, i) => ({ bytes: 32 * KiB, at: i * 0.1 }))
  const after = [23.2, 24, 30].map((at) => ({ bytes: 100, at }))
  expect(rests([...flood, ...after]).slice(-4)).toEqual([true, false, false, false])
})

test('what trickles never waits, however it is cut', () => {
  const read = fc.record({
    bytes: fc.integer({ min: 1, max: 128 * KiB }),
    gap: fc.double({ min: 1, max: 1e6, noNaN: true }),
  })
  fc.assert(
    fc.property(fc.array(read, { maxLength: 100 }), (reads) => {
      let at = 0
      expect(
        rests(reads.map(({ bytes, gap }) => ({ bytes, at: (at += gap * (bytes / (64 * KiB) + 1)) }))),
      ).not.toContain(true)
    }),
  )
})
