import { backoffMs } from '@sandlot/shared/async/backoff'

const RULES = { firstMs: 500, longestMs: 15_000 }

/**
 * Milliseconds to wait before attempt number `attempt` (from 1): doubling, at most 15 s, and
 * between half and all of that, so that all browsers do not reconnect in the same instant after a
 * restart.
 */
export function reconnectMs(attempt: number, random: () => number = Math.random): number {
  return Math.round(backoffMs(attempt, RULES, random))
}
