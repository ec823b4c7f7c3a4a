/** Row "cost": cached, written and reasoning tokens apart, unknown is nothing. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { costOf, priceOf } from '../../src/model/prices.ts'

const OPENAI = 'https://api.openai.com/v1'
const price = { input: 2, cached: 0.5, output: 8, reasoning: 16 }

test('cost: cached input and reasoning output have their own prices', () => {
  const usage = { input: 1_000_000, cached: 400_000, output: 100_000, reasoning: 25_000 }
  expect(costOf(usage, price, 0)).toBeCloseTo(0.6 * 2 + 0.4 * 0.5 + 0.075 * 8 + 0.025 * 16, 10)
})

test('cost: input that is written to the cache has its own price, and for an hour another', () => {
  const usage = { input: 1_000_000, cached: 400_000, cacheWritten: 300_000, output: 0 }
  const writes = { ...price, cacheWrite: 2.5 }
  expect(costOf(usage, writes, 0)).toBeCloseTo(0.3 * 2 + 0.4 * 0.5 + 0.3 * 2.5, 10)
  const hour = { ...usage, cacheWrittenHour: 100_000 }
  expect(costOf(hour, { ...writes, cacheWriteHour: 4 }, 0)).toBeCloseTo(0.8 + 0.2 * 2.5 + 0.1 * 4, 10)
  expect(costOf(hour, writes, 0)).toBe(costOf(usage, writes, 0))
  const tooMuch = { input: 100_000, cached: 300_000, cacheWritten: 300_000, output: 0 }
  expect(costOf(tooMuch, writes, 0)).toBeCloseTo(0.1 * 0.5, 10)
})

test('cost: the whole request has the rates of the step that all its input reaches', () => {
  const steps = [
    { above: 200_000, input: 4, output: 10 },
    { above: 500_000, input: 5, output: 11 },
  ]
  const stepped = { ...price, steps }
  const cost = (input: number) => costOf({ input, cached: input, output: 1_000 }, stepped, 0)
  expect(cost(200_000)).toBeCloseTo(0.2 * 0.5 + 0.008, 10)
  expect(cost(200_001)).toBeCloseTo(0.200_001 * 4 + 0.01, 10)
  expect(cost(600_000)).toBeCloseTo(0.6 * 5 + 0.011, 10)
})

test('cost: reasoning that was counted beside the output is paid beside it', () => {
  expect(costOf({ input: 0, output: 100_000, reasoning: 200_000 }, price, 0)).toBeCloseTo(0.8 + 3.2, 10)
})

test('cost: without special prices all input and all output cost the same, however it is counted', () => {
  const tokens = fc.option(fc.nat(2_000_000), { nil: undefined })
  const parts = fc.record({ cached: tokens, cacheWritten: tokens, cacheWrittenHour: tokens })
  fc.assert(
    fc.property(fc.nat(2_000_000), fc.nat(2_000_000), parts, (input, output, counted) => {
      const cost = costOf({ input, output, ...counted }, { input: 1, output: 3 }, 0)
      expect(cost).toBeCloseTo((input + 3 * output) / 1_000_000, 9)
    }),
  )
})

test('cost: an unknown model, and an answer that nobody counted, cost nothing that is known', () => {
  expect(priceOf('home-made', OPENAI, {})).toBeUndefined()
  expect(costOf({ input: 5 }, undefined, 0)).toBeUndefined()
  expect(costOf({}, price, 0)).toBeUndefined()
})

test('cost: the deployment knows better, at every address, also for a dated snapshot', () => {
  const own = { 'gpt-4o': price }
  expect(priceOf('gpt-4o', OPENAI, {})).toMatchObject({ input: 2.5, cached: 1.25, output: 10 })
  expect(priceOf('gpt-4o', OPENAI, own)).toBe(price)
  expect(priceOf('gpt-4o-2024-08-06', OPENAI, own)).toBe(price)
  expect(priceOf('gpt-4o', 'http://127.0.0.1:8000/v1', own)).toBe(price)
  expect(priceOf('constructor', OPENAI, own)).toBeUndefined()
})
