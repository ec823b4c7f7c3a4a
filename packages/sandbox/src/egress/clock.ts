import type { EgressBudgets } from './budget.ts'
import type { EgressReason } from '../sandbox.ts'
import { EgressRefused } from './refusal.ts'

/** Time limits of one connection: its lifetime, its current stage, and its silence. */
export interface ConnectionClock {
  /** Aborted with an `EgressRefused` when a limit is reached, or by `end`. */
  readonly signal: AbortSignal
  /** Starts a stage with this limit. `reason`: default `too_slow`. */
  stage(ms: number, what: string, reason?: EgressReason): void
  /** Starts the stage in which bytes pass; call `touch` for each transfer. */
  passing(): void
  touch(): void
  /** Stops all limits. Idempotent. */
  end(reason?: unknown): void
}

export function createClock(budgets: EgressBudgets): ConnectionClock {
  const controller = new AbortController()
  const after = (ms: number, refused: EgressRefused): NodeJS.Timeout =>
    setTimeout(() => controller.abort(refused), ms).unref()
  const life = after(
    budgets.connectionMs,
    new EgressRefused('time_budget', `a connection may live for ${budgets.connectionMs} ms at most.`),
  )
  let waiting: NodeJS.Timeout | undefined
  const restart = (ms: number, message: string, reason: EgressReason = 'too_slow'): void => {
    clearTimeout(waiting)
    waiting = after(ms, new EgressRefused(reason, message))
  }
  return {
    signal: controller.signal,
    stage: (ms, what, reason) => restart(ms, `${what} took more than ${ms} ms.`, reason),
    passing: () => restart(budgets.idleMs, `nothing has passed for ${budgets.idleMs} ms.`),
    touch: () => waiting?.refresh(),
    end(reason) {
      clearTimeout(life)
      clearTimeout(waiting)
      controller.abort(reason ?? new EgressRefused('broken', 'the connection is over.'))
    },
  }
}
