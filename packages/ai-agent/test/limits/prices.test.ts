/** Row "cost": cached and reasoning tokens apart, unknown is nothing. */
import { expect, test } from 'vitest'
import { costOf, priceOf } from '../../src/model/prices.ts'

const price = { input: 2, cached: 0.5, output: 8, reasoning: 16 }

test('cost: cached input and reasoning output have their own prices', () => {
  const usage = { input: 1_000_000, cached: 400_000, output: 100_000, reasoning: 25_000 }
  expect(costOf(usage, price)).toBeCloseTo(0.6 * 2 + 0.4 * 0.5 + 0.075 * 8 + 0.025 * 16, 10)
})

test('cost: reasoning that was counted beside the output is paid beside it', () => {
  expect(costOf({ input: 0, output: 100_000, reasoning: 200_000 }, price)).toBeCloseTo(0.8 + 3.2, 10)
})

test('cost: without special prices all input and all output cost the same', () => {
  const usage = { input: 1_000_000, cached: 400_000, output: 100_000, reasoning: 25_000 }
  expect(costOf(usage, { input: 1, output: 1 })).toBeCloseTo(1.1, 10)
})

test('cost: an unknown model, and an answer that nobody counted, cost nothing that is known', () => {
  expect(priceOf('home-made')).toBeUndefined()
  expect(costOf({ input: 5 }, undefined)).toBeUndefined()
  expect(costOf({}, price)).toBeUndefined()
})

test('cost: a dated snapshot has the price of its model; the deployment knows better', () => {
  expect(priceOf('gpt-4o-2024-08-06')).toEqual(priceOf('gpt-4o'))
  expect(priceOf('gpt-4o', { 'gpt-4o': price })).toBe(price)
  expect(priceOf('constructor')).toBeUndefined()
})
