/**
 * Durations in bounded memory: exact up to 512 values, then counts in buckets that grow by a fixed
 * factor, so that every percentile is within 2 % of the true one, for any number and order of
 * values.
 */

/** A percentile is off by a share of at most (FACTOR - 1) / (FACTOR + 1). */
const FACTOR = 1.04
const LOG_FACTOR = Math.log(FACTOR)
/**
 * Smaller counts as 0, larger as this: from a microsecond to 31 years, in milliseconds. At most 900
 * buckets.
 */
const SMALLEST = 0.001
const LARGEST = 1e12

/** Values that are kept exactly; with the next one only buckets remain. */
const EXACT_VALUES = 512

export interface Summary {
  count: number
  /** Exact. */
  sum: number
  /** 0 when there were no values. */
  mean: number
  p50: number
  p95: number
}

export class Histogram {
  #count = 0
  #sum = 0
  #zeros = 0
  #exact: number[] | undefined = []
  readonly #buckets = new Map<number, number>()

  /** Negative values and NaN count as 0. */
  add(value: number): void {
    const safe = Number.isFinite(value) && value > 0 ? Math.min(value, LARGEST) : 0
    this.#count++
    this.#sum += safe
    if (this.#count > EXACT_VALUES) this.#exact = undefined
    this.#exact?.push(safe)
    if (safe < SMALLEST) {
      this.#zeros++
      return
    }
    const bucket = Math.ceil(Math.log(safe) / LOG_FACTOR)
    this.#buckets.set(bucket, (this.#buckets.get(bucket) ?? 0) + 1)
  }

  get count(): number {
    return this.#count
  }

  /** By nearest rank; `share` is 0–1. Returns 0 without values. */
  percentile(share: number): number {
    const rank = Math.max(1, Math.ceil(share * this.#count))
    if (this.#exact !== undefined) return this.#exact.toSorted((a, b) => a - b)[rank - 1] ?? 0
    let seen = this.#zeros
    if (rank <= seen) return 0
    for (const bucket of [...this.#buckets.keys()].toSorted((a, b) => a - b)) {
      seen += this.#buckets.get(bucket) ?? 0
      // The value with the same relative distance to both ends of the bucket.
      if (seen >= rank) return (2 * FACTOR ** bucket) / (FACTOR + 1)
    }
    return 0
  }

  summary(): Summary {
    return {
      count: this.#count,
      sum: this.#sum,
      mean: this.#count === 0 ? 0 : this.#sum / this.#count,
      p50: this.percentile(0.5),
      p95: this.percentile(0.95),
    }
  }
}
