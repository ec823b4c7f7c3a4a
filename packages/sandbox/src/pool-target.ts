/** How far back claims are looked at, in milliseconds. */
const MEMORY_MS = 3_600_000
const LEAST = 2
const MOST = 32

/** How many warm sandboxes to keep. */
export interface PoolTarget {
  current(): number
  /** A sandbox was asked for by somebody who had none. */
  asked(): void
  /** Making one took this long. */
  made(ms: number): void
}

/**
 * A fixed number, or `auto`: the 95th percentile of the claims that came within the time of one refill, over the last
 * hour, at least 2 and at most 32. `now` in milliseconds.
 */
export function createPoolTarget(
  target: number | 'auto',
  refillEveryMs: number,
  now: () => number = () => performance.now(),
): PoolTarget {
  let asked: number[] = []
  let makeMs = 1_000
  return {
    current() {
      if (target !== 'auto') return target
      asked = asked.filter((at) => at > now() - MEMORY_MS)
      const window = makeMs + refillEveryMs
      const counts = asked.map((start) => asked.filter((at) => at >= start && at < start + window).length)
      counts.sort((a, b) => a - b)
      const p95 = counts[Math.ceil(counts.length * 0.95) - 1] ?? 0
      return Math.min(MOST, Math.max(LEAST, p95))
    },
    asked: () => void asked.push(now()),
    made(ms) {
      // A moving average: one slow engine call is not the rule.
      makeMs = makeMs * 0.7 + ms * 0.3
    },
  }
}
