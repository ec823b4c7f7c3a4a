import { expect, test } from 'vitest'

import { backoffMs } from '../../src/async/backoff.ts'

test('a wait doubles up to the longest, and a random one is between half and all of it', () => {
  const rules = { firstMs: 100, longestMs: 1_000 }
  expect([0, 1, 2, 4, 5, 2_000].map((failures) => backoffMs(failures, rules))).toEqual([
    100, 100, 200, 800, 1_000, 1_000,
  ])
  expect(backoffMs(2, rules, () => 0)).toBe(100)
  expect(backoffMs(2, rules, () => 0.5)).toBe(150)
})
