/** Approvals of a session that wait for its user: a fold of its log. */
import { z } from 'zod'
import { toolKind } from './call.ts'
import { type SessionEvent, isLive, isOutcome, metaOf, sandlotEventOf } from './events.ts'
import { question } from './question.ts'
import { ruleReason } from './rules.ts'
import { permissionOption } from './sandlot-event.ts'

export const pendingApproval = z.object({
  callId: z.string(),
  /** The tool, its kind, and a short title of the call. */
  name: z.string(),
  kind: toolKind,
  title: z.string(),
  /** Unchanged from the model. */
  arguments: z.unknown(),
  /** The answers to choose from, by `optionId`. */
  options: z.array(permissionOption),
  /** Epoch milliseconds. */
  askedAt: z.number(),
  /** Epoch milliseconds; after it the call is denied. */
  expiresAt: z.number(),
  /** A question instead of an approval. */
  question: question.optional(),
  why: z.array(ruleReason).optional(),
  /** JSON Schema of the arguments, for an editor of them; absent: the tool is not available now. */
  schema: z.record(z.string(), z.unknown()).optional(),
})
type PendingApproval = z.infer<typeof pendingApproval>

/** `GET /api/sessions/:id/approvals` */
export const pendingApprovalList = z.object({ approvals: z.array(pendingApproval) })

/** Oldest first. */
export function pendingApprovals(log: readonly SessionEvent[]): PendingApproval[] {
  const calls = new Map<string, Extract<SessionEvent, { sessionUpdate: 'tool_call' }>>()
  const pending = new Map<string, PendingApproval>()
  for (const event of log) {
    if (isLive(event)) continue
    if (event.sessionUpdate === 'tool_call') calls.set(event.toolCallId, event)
    if (isOutcome(event)) pending.delete(event.toolCallId)
    const happened = sandlotEventOf(event)
    if (happened?.type === 'approval_answered') pending.delete(happened.toolCallId)
    if (happened?.type !== 'approval_asked') continue
    const { toolCallId, type: _type, ...asked } = happened
    const call = calls.get(toolCallId)
    pending.set(toolCallId, {
      callId: toolCallId,
      name: call?.name ?? 'unknown',
      kind: call?.kind ?? 'other',
      title: call?.title ?? '',
      arguments: call?.rawInput ?? {},
      askedAt: metaOf(event).at,
      ...asked,
    })
  }
  return [...pending.values()]
}
