/**
 * A token bucket for each key, kept as the time at which it is full again. Work that comes too soon
 * is given a time in the order in which it came, and is refused where that is too far away.
 */

interface PaceOptions {
  /** Milliseconds until a bucket has one more token. */
  everyMs: number
  /** Tokens of a full bucket. */
  burst: number
  /** The clock, in milliseconds. Tests set it. */
  now?: () => number
}

interface Reserve {
  /** Tokens. Default: one. */
  cost?: number
  /** A longer wait is refused. */
  longestMs: number
  /** Milliseconds of waiting that this is spared: it passes what waits so long. */
  aheadMs?: number
}

/** Nothing was reserved where it was `refused`; the same may pass after `retryMs`. */
type Reserved = { waitMs: number } | { refused: true; retryMs: number }

const SWEEP_EVERY_MS = 1_000

export class Pace {
  readonly #options: PaceOptions
  readonly #now: () => number
  /** By key. Absent: the bucket is full. */
  readonly #fullAt = new Map<string, number>()
  #sweepAt = -Infinity

  constructor(options: PaceOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  reserve(key: string, { cost = 1, longestMs, aheadMs = 0 }: Reserve): Reserved {
    const { everyMs, burst } = this.#options
    const now = this.#now()
    this.#sweep(now)
    const fullAt = Math.max(this.#fullAt.get(key) ?? now, now) + cost * everyMs
    const waitMs = fullAt - now - burst * everyMs - aheadMs
    if (waitMs > longestMs) return { refused: true, retryMs: waitMs - longestMs }
    this.#fullAt.set(key, fullAt)
    return { waitMs: Math.max(0, waitMs) }
  }

  /** The wait, however long. */
  take(key: string, cost = 1): number {
    const taken = this.reserve(key, { cost, longestMs: Infinity })
    return 'refused' in taken ? 0 : taken.waitMs
  }

  #sweep(now: number): void {
    if (now < this.#sweepAt) return
    this.#sweepAt = now + SWEEP_EVERY_MS
    for (const [key, fullAt] of this.#fullAt) if (fullAt <= now) this.#fullAt.delete(key)
  }
}
