/** The delay before a server is started again, which the SDK does for streams only: doubling, with jitter, at most a minute. */

const FIRST_MS = 500
const LONGEST_MS = 60_000
/** One that ran this long was well; its next failure is its first. */
const WELL_MS = 30_000

export interface Backoff {
  /** Failures in a row. */
  readonly failures: number
  /** Milliseconds until it may be tried; 0: now. */
  waitMs(): number
  failed(): void
  /** It ran from `since` (of `performance.now()`) until now. */
  ended(since: number): void
  /** It was well when it was stopped: forget what was. */
  reset(): void
}

export function createBackoff(now: () => number = () => performance.now()): Backoff {
  let failures = 0
  let retryAt = 0
  const failed = (): void => {
    failures++
    const longest = Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures - 1))
    retryAt = now() + longest * (0.5 + Math.random() / 2)
  }
  return {
    get failures() {
      return failures
    },
    waitMs: () => Math.max(0, retryAt - now()),
    failed,
    ended(since) {
      if (now() - since >= WELL_MS) failures = 0
      failed()
    },
    reset() {
      failures = 0
      retryAt = 0
    },
  }
}
