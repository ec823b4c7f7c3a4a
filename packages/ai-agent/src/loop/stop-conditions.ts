/**
 * Which calls of a turn must not start any more, and when the prompt ends before its next request.
 */
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { LoopContext } from './context.ts'
import { callOverBudget, callsOf, overBudget, spentBy } from '../limits/budgets.ts'
import { callOverPeriods, overPeriods } from '../limits/period-budgets.ts'
import { endingFailure, failureText, notAfterFailure } from '../limits/error-policy.ts'
import { errorEvent, endEvent } from './endings.ts'

type BudgetContext = Pick<LoopContext, 'promptId' | 'log' | 'budgets' | 'spent' | 'now'>

interface CallRefusal {
  reason: FailureReason
  /** For the model. */
  message: string
}

/** Why this call must not start now. Asked right before each start. */
export async function callRefusal(ctx: LoopContext, callId: string): Promise<CallRefusal | undefined> {
  const log = ctx.log()
  const failure = endingFailure(log, ctx.promptId)
  if (failure !== undefined) return { reason: 'cancelled', message: notAfterFailure(failure) }
  if (ctx.budgets === undefined) return undefined
  const calls = callsOf(log, ctx.promptId)
  const place = calls.places.get(callId) ?? 0
  const message =
    callOverBudget(place, calls, ctx.budgets, ctx.now()) ??
    (await callOverLasting(ctx, calls.places.size - place))
  return message === undefined ? undefined : { reason: 'cancelled', message }
}

/**
 * The end of a prompt that must not ask again: a failure that ends it, or a budget that is used up.
 */
export async function endBeforeRequest(ctx: BudgetContext): Promise<SessionEvent | undefined> {
  const log = ctx.log()
  const failure = endingFailure(log, ctx.promptId)
  if (failure !== undefined)
    return errorEvent(ctx.promptId, { cause: 'failed_call' }, failureText(failure), ctx.now())
  if (ctx.budgets === undefined) return undefined
  const over = overBudget(spentBy(log, ctx.promptId), ctx.budgets, ctx.now()) ?? (await overLasting(ctx))
  return over === undefined ? undefined : endEvent(ctx.promptId, 'budget', over, ctx.now())
}

async function overLasting({ budgets, spent, now }: BudgetContext): Promise<string | undefined> {
  return budgets && spent && overPeriods(budgets, spent, now())
}

async function callOverLasting(
  { budgets, spent, now }: LoopContext,
  behind: number,
): Promise<string | undefined> {
  return budgets && spent && callOverPeriods(budgets, spent, behind, now())
}
