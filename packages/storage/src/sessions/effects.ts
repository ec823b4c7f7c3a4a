/** Effects of stored events, in their transaction. */
import { randomUUID } from 'node:crypto'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { Transaction } from 'kysely'
import { appendAudit } from '../audit/audit.ts'
import { insertNotifications } from '../shares/notifications.ts'
import { endRules, insertRules } from './rules.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { Effects, NewNotification } from '../tables/records.ts'
import { recordRun } from '../usage/usage.ts'
import { sumOutcome, sumUsage, teamsOf } from '../usage/usage-sums.ts'

type Trx = Transaction<SessionsSchema>

/** Changed columns of the session's own row. */
export function sessionChanges(effects: Effects): {
  title?: string
  mode?: string
  running_prompt_id?: string | null
  ended_reason?: string
  ended_at?: number
} {
  return {
    title: effects.title,
    mode: effects.mode,
    running_prompt_id: effects.runningPromptId,
    ended_reason: effects.ended?.reason,
    ended_at: effects.ended?.at,
  }
}

/**
 * Effects on other tables. `at`: the newest event's time. Throws `conflict` or `not_found`, which
 * rolls back the whole transaction.
 */
export async function applyEffects(
  trx: Trx,
  session: { id: string; userId: string },
  effects: Effects,
  at: number,
): Promise<void> {
  if (effects.submission !== undefined) await recordSubmission(trx, session.id, effects.submission)
  if (effects.approvalAsked !== undefined) await askApproval(trx, session.id, effects.approvalAsked)
  if (effects.approvalAnswered !== undefined) await answerApproval(trx, session.id, effects.approvalAnswered)
  if (effects.runningPromptId !== undefined) {
    await endRules(trx, session.id, effects.runningPromptId)
    const charged = { id: session.id, userId: effects.chargedTo ?? session.userId }
    await recordRun(trx, charged, effects.runningPromptId, at)
  }
  if (effects.notifications !== undefined) {
    const approvers = await approverNotifications(trx, session.id, effects.notifications, at)
    await insertNotifications(trx, session.id, [...effects.notifications, ...approvers], at)
  }
  for (const line of effects.audit ?? []) await appendAudit(trx, line)
  if (effects.rules !== undefined) await insertRules(trx, session.userId, effects.rules)
  if (effects.output !== undefined) await completeOutput(trx, session.id, effects.output)
  if (effects.usage !== undefined) await recordUsage(trx, session, effects.usage)
  if (effects.outcome !== undefined) await recordOutcome(trx, session, effects.outcome)
}

/** Users who may answer approvals get the owner's notification as well. */
async function approverNotifications(
  trx: Trx,
  sessionId: string,
  notifications: readonly NewNotification[],
  at: number,
): Promise<NewNotification[]> {
  const asked = notifications.filter(({ kind }) => kind === 'approval')
  if (asked.length === 0) return []
  const approvers = await trx
    .selectFrom('shares')
    .select('target_id')
    .where('session_id', '=', sessionId)
    .where('kind', '=', 'person')
    .where('may_approve', '=', 1)
    .where((share) => share.or([share('expires_at', 'is', null), share('expires_at', '>', at)]))
    .execute()
  return asked.flatMap((notice) => approvers.map(({ target_id: userId }) => ({ ...notice, userId })))
}

async function recordSubmission(
  trx: Trx,
  sessionId: string,
  submission: NonNullable<Effects['submission']>,
): Promise<void> {
  const stored = await trx
    .insertInto('submissions')
    .values({
      user_id: submission.userId,
      request_id: submission.requestId,
      session_id: sessionId,
      prompt_id: submission.promptId,
    })
    .onConflict((conflict) => conflict.columns(['user_id', 'request_id']).doNothing())
    .returning('request_id')
    .executeTakeFirst()
  if (stored === undefined)
    throw new SandlotError('conflict', `Request ${submission.requestId} was submitted before.`)
}

async function askApproval(
  trx: Trx,
  sessionId: string,
  asked: NonNullable<Effects['approvalAsked']>,
): Promise<void> {
  const stored = await trx
    .insertInto('approvals')
    .values({
      session_id: sessionId,
      tool_call_id: asked.toolCallId,
      asked_at: asked.askedAt,
      expires_at: asked.expiresAt,
      answered_at: null,
      option_id: null,
      answered_by: null,
    })
    .onConflict((conflict) => conflict.columns(['session_id', 'tool_call_id']).doNothing())
    .returning('tool_call_id')
    .executeTakeFirst()
  if (stored === undefined)
    throw new SandlotError('conflict', `Approval of ${asked.toolCallId} was asked before.`)
}

async function answerApproval(
  trx: Trx,
  sessionId: string,
  answered: NonNullable<Effects['approvalAnswered']>,
): Promise<void> {
  const first = await trx
    .updateTable('approvals')
    .set({ answered_at: answered.answeredAt, option_id: answered.optionId, answered_by: answered.by })
    .where('session_id', '=', sessionId)
    .where('tool_call_id', '=', answered.toolCallId)
    .where('answered_at', 'is', null)
    .returning('tool_call_id')
    .executeTakeFirst()
  if (first !== undefined) return
  const earlier = await trx
    .selectFrom('approvals')
    .select('answered_by')
    .where('session_id', '=', sessionId)
    .where('tool_call_id', '=', answered.toolCallId)
    .executeTakeFirst()
  if (earlier === undefined)
    throw new SandlotError('not_found', `No approval of ${answered.toolCallId} was requested.`)
  throw new SandlotError(
    'conflict',
    `The approval of ${answered.toolCallId} was answered before, by ${earlier.answered_by}.`,
  )
}

async function completeOutput(
  trx: Trx,
  sessionId: string,
  output: NonNullable<Effects['output']>,
): Promise<void> {
  const counts = { total_bytes: output.totalBytes, lines: output.lines, complete: 1 }
  await trx
    .insertInto('outputs')
    .values({ session_id: sessionId, call_id: output.callId, stored_bytes: 0, ...counts })
    .onConflict((conflict) => conflict.columns(['session_id', 'call_id']).doUpdateSet(counts))
    .execute()
}

async function recordUsage(
  trx: Trx,
  session: { id: string; userId: string },
  usage: NonNullable<Effects['usage']>,
): Promise<void> {
  const userId = usage.chargedTo ?? session.userId
  const teams = await teamsOf(trx, userId)
  await trx
    .insertInto('usage')
    .values({
      id: randomUUID(),
      user_id: userId,
      teams,
      session_id: session.id,
      prompt_id: usage.promptId,
      model: usage.model,
      input: usage.input,
      output: usage.output,
      cached: usage.cached ?? 0,
      reasoning: usage.reasoning,
      cost: usage.cost ?? null,
      calls: usage.calls ?? 0,
      at: usage.at,
    })
    .execute()
  await sumUsage(trx, { userId, teams }, usage)
}

async function recordOutcome(
  trx: Trx,
  session: { id: string; userId: string },
  outcome: NonNullable<Effects['outcome']>,
): Promise<void> {
  const userId = outcome.chargedTo ?? session.userId
  const stored = await trx
    .insertInto('outcomes')
    .values({
      session_id: session.id,
      call_id: outcome.callId,
      tool: outcome.tool,
      status: outcome.status,
      reason: outcome.reason ?? null,
      run_ms: Math.round(outcome.runMs),
      wait_ms: Math.round(outcome.waitMs),
      user_id: userId,
      at: outcome.at,
      output_bytes: outcome.outputBytes ?? null,
    })
    .onConflict((conflict) => conflict.columns(['session_id', 'call_id']).doNothing())
    .returning('call_id')
    .executeTakeFirst()
  if (stored === undefined)
    throw new SandlotError('conflict', `Call ${outcome.callId} has its outcome already.`)
  await sumOutcome(trx, { userId, teams: await teamsOf(trx, userId) }, outcome)
}
