import { backoffMs } from '@sandlot/shared/async/backoff'

const RULES = { firstMs: 500, longestMs: 15_000 }

/**
 * How long to wait before the attempt number `attempt` (from 1), in milliseconds: doubling, at most
 * 15 s, and between half and all of that, so that all browsers do not come back in the same instant
 * after a restart.
 */
export function reconnectMs(attempt: number, random: () => number = Math.random): number {
  return Math.round(backoffMs(attempt, RULES, random))
}
