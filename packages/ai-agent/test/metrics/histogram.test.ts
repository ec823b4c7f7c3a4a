import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Histogram } from '../../src/metrics/histogram.ts'

const EXACT_VALUES = 512
/** For buckets that grow by 4 %. */
const RELATIVE_ERROR = 0.04 / 2.04

const of = (values: readonly number[]): Histogram => {
  const histogram = new Histogram()
  for (const value of values) histogram.add(value)
  return histogram
}

test('without values everything is 0, and nothing is NaN', () => {
  expect(of([]).summary()).toEqual({ count: 0, sum: 0, mean: 0, p50: 0, p95: 0 })
})

const value = fc.oneof(
  fc.double({ min: 0.001, max: 1e9, noNaN: true }),
  fc.integer({ min: 0, max: 100 }),
  fc.constant(5),
)
const exactOf = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(share * values.length)) - 1] ?? 0

test('few values have exact percentiles, many have them within 2 %, whatever the values and their order', () => {
  expect(RELATIVE_ERROR).toBeLessThan(0.02)
  fc.assert(
    fc.property(
      fc.array(value, { minLength: 1, maxLength: 200 }),
      fc.integer({ min: 1, max: 6 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (some, times, share) => {
        const values = Array.from({ length: times }, () => some).flat()
        const exact = exactOf(values, share)
        const off = Math.abs(of(values).percentile(share) - exact)
        if (values.length <= EXACT_VALUES) expect(off).toBe(0)
        // A hair more than the bound: powers and logarithms round too.
        else expect(off).toBeLessThanOrEqual(exact * (RELATIVE_ERROR + 1e-9))
      },
    ),
  )
})

test('count and sum are exact; broken and negative values are 0', () => {
  const { count, sum } = of([1, 2.5, -3, Number.NaN, Number.POSITIVE_INFINITY]).summary()
  expect({ count, sum }).toEqual({ count: 5, sum: 3.5 })
})
