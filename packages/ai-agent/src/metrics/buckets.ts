/** Counts of values by fixed upper bounds, which sums of several agents keep. */

/** Tokens: bounds of OpenTelemetry’s `gen_ai.client.token.usage`. Bytes have the same. */
export const POWERS_OF_FOUR = Array.from({ length: 14 }, (_, power) => 4 ** power)
/** Seconds: bounds of OpenTelemetry’s durations of generative AI. */
export const SECONDS = Array.from({ length: 14 }, (_, power) => 2 ** power / 100)

export interface BucketCounts {
  bounds: readonly number[]
  /** Values up to each bound, those of the bounds before it included. */
  upTo: readonly number[]
  count: number
  sum: number
}

export class Buckets {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #count = 0
  #sum = 0

  /** `bounds`: ascending. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = bounds.map(() => 0)
  }

  add(value: number): void {
    const place = this.#bounds.findIndex((bound) => value <= bound)
    if (place !== -1) this.#counts[place] = (this.#counts[place] ?? 0) + 1
    this.#count++
    this.#sum += value
  }

  counts(): BucketCounts {
    let below = 0
    const upTo = this.#counts.map((count) => (below += count))
    return { bounds: this.#bounds, upTo, count: this.#count, sum: this.#sum }
  }
}
