/** Time span of the claims that count, in milliseconds. */
const MEMORY_MS = 3_600_000
const LEAST = 2
const MOST = 32

/** Target number of warm sandboxes. */
interface PoolTarget {
  current(): number
  /** Records a request of a user without a sandbox. */
  asked(): void
  /** Records the time that one took to create. */
  made(ms: number): void
}

/**
 * A fixed number, or `auto`: the 95th percentile of the claims within the time of one refill, over
 * the last hour, at least 2 and at most 32. `now` in milliseconds, monotonic.
 */
export function createPoolTarget(
  target: number | 'auto',
  refillEveryMs: number,
  now: () => number = () => performance.now(),
): PoolTarget {
  return target === 'auto'
    ? automaticTarget(refillEveryMs, now)
    : { current: () => target, asked() {}, made() {} }
}

function automaticTarget(refillEveryMs: number, now: () => number): PoolTarget {
  /** Sorted. */
  let asked: number[] = []
  let makeMs = 1_000
  function forget(): void {
    const since = now() - MEMORY_MS
    const first = asked.findIndex((at) => at > since)
    if (first !== 0) asked = first === -1 ? [] : asked.slice(first)
  }
  return {
    current() {
      forget()
      const counts = claimsWithin(asked, makeMs + refillEveryMs).toSorted((a, b) => a - b)
      const p95 = counts[Math.ceil(counts.length * 0.95) - 1] ?? 0
      return Math.min(MOST, Math.max(LEAST, p95))
    },
    asked() {
      forget()
      asked.push(now())
    },
    made(ms) {
      // A moving average: one slow engine call is an exception.
      makeMs = makeMs * 0.7 + ms * 0.3
    },
  }
}

/** For each of these sorted times: the number of them from it until `window` after it. */
function claimsWithin(times: readonly number[], window: number): number[] {
  let [first, end] = [0, 0]
  return times.map((time, place) => {
    // Several may be equal.
    if (time !== times[first]) first = place
    while (end < times.length && (times[end] ?? 0) < time + window) end += 1
    return end - first
  })
}
