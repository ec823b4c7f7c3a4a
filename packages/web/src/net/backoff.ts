const FIRST_MS = 500
const LONGEST_MS = 15_000

/**
 * How long to wait before the attempt number `attempt` (from 1), in milliseconds: doubling, at most
 * 15 s, and between half and all of that, so that all browsers do not come back in the same instant
 * after a restart.
 */
export function backoffMs(attempt: number, random: () => number = Math.random): number {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.max(0, Math.min(attempt - 1, 10)))
  return Math.round(full / 2 + (full / 2) * random())
}
