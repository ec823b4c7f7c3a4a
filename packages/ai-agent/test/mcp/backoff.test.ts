import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createBackoff } from '../../src/mcp/server.ts'

test('a server that keeps failing is restarted less and less often, at last once a minute', () => {
  let now = 0
  const backoff = createBackoff(() => now)
  const waits = Array.from({ length: 20 }, () => {
    backoff.failed()
    const wait = backoff.waitMs()
    now += wait
    return wait
  })
  const within = waits.map((wait, index) => {
    const longest = Math.min(60_000, 500 * 2 ** index)
    return wait >= longest / 2 && wait <= longest
  })
  expect(within).toEqual(waits.map(() => true))
  expect(backoff.waitMs()).toBe(0)
})

test('a server that was healthy for a while starts over; one that crashes at once does not', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(60_000), { minLength: 1, maxLength: 20 }), (runs) => {
      let now = 0
      const backoff = createBackoff(() => now)
      let expected = 0
      for (const run of runs) {
        const since = now
        now += run
        backoff.ended(since)
        expected = run >= 30_000 ? 1 : expected + 1
        expect(backoff.failures).toBe(expected)
      }
      backoff.reset()
      expect([backoff.failures, backoff.waitMs()]).toEqual([0, 0])
    }),
  )
})
