/** When a model request that failed is made again. */
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '@sandlot/shared/async/backoff'
import type { ModelError } from '../model/model.ts'

export interface RetryRules {
  /** Requests a turn, the first included. */
  attempts: number
  /**
   * Milliseconds. The n-th wait is random between 0 and `baseMs · 2ⁿ`, at most `capMs` (full
   * jitter).
   */
  baseMs: number
  capMs: number
  /**
   * A provider that asks for a longer wait than this ends the prompt, with the time in the text.
   */
  longestWaitMs: number
}

export const RETRY_RULES: RetryRules = { attempts: 4, baseMs: 500, capMs: 8_000, longestWaitMs: 60_000 }

type Verdict = { again: true; waitMs: number } | { again: false; message: string }

/** `attempt` from 1. `random` in [0, 1). */
export function retryVerdict(
  error: ModelError,
  attempt: number,
  rules: RetryRules,
  random: () => number = Math.random,
): Verdict {
  if (error.waitMs !== undefined && error.waitMs > rules.longestWaitMs) {
    return { again: false, message: `${error.forMembers} Try again in ${inWords(error.waitMs)}.` }
  }
  if (!error.retryable || attempt >= rules.attempts) return { again: false, message: error.forMembers }
  const jitter = random() * backoffMs(attempt, { firstMs: rules.baseMs, longestMs: rules.capMs })
  return { again: true, waitMs: Math.max(Math.round(jitter), error.waitMs ?? 0) }
}

function inWords(ms: number): string {
  const minutes = Math.ceil(ms / 60_000)
  if (minutes < 120) return `${minutes} minutes`
  return `${Math.ceil(minutes / 60)} hours`
}

/** Resolves after `ms`, or at once when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}
