export interface BackoffRules {
  /** After the first failure. */
  firstMs: number
  longestMs: number
}

/**
 * Milliseconds to wait after `failures` in a row (from 1): doubles, at most `longestMs`. With a
 * `random` (in [0, 1)) between half and all of that, so that clients do not return in the same
 * instant.
 */
export function backoffMs(
  failures: number,
  { firstMs, longestMs }: BackoffRules,
  random: () => number = () => 1,
): number {
  const full = Math.min(longestMs, firstMs * 2 ** Math.max(0, failures - 1))
  return full / 2 + (full / 2) * random()
}
