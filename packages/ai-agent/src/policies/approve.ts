/**
 * Asks the user where the mode wants it. The question is in the log before anybody sees it and survives a restart;
 * the answer, its time limit and who may give it are the session's business.
 */
import { orAborted } from '../tools/or-aborted.ts'
import type {
  ApprovalAnswer,
  ApprovalOption,
  CallContext,
  Policy,
  ToolCall,
  ToolOutcome,
} from '../tools/tool.ts'

export const APPROVAL_OPTIONS: readonly ApprovalOption[] = [
  { optionId: 'allow_once', name: 'Allow', kind: 'allow_once' },
  { optionId: 'allow_session', name: 'Allow for this session', kind: 'allow_always' },
  { optionId: 'reject_once', name: 'Deny', kind: 'reject_once' },
]

export function approve(ttlMs: number): Policy {
  return (next) =>
    async function* approved(call, ctx) {
      if (!needsApproval(call, ctx)) return yield* next(call, ctx)
      if (ctx.approval.state === 'none') {
        yield { type: 'approval_asked', options: [...APPROVAL_OPTIONS], expiresAt: Date.now() + ttlMs }
      }
      const answer = await ctx.clock.wait(orAborted(ctx.approval.answer(), ctx.signal))
      return answer.allowed ? yield* next(call, ctx) : deniedOutcome(answer)
    }
}

function needsApproval(call: ToolCall, ctx: CallContext): boolean {
  // Asked before a restart: what the log says counts, even if the mode has changed since.
  if (ctx.approval.state !== 'none') return true
  // It began before a restart, so it was allowed then.
  if (call.tool.readOnly || ctx.resumed !== undefined || ctx.mode === 'yolo') return false
  if (ctx.mode === 'auto-edit' && call.tool.kind === 'edit') return false
  return !ctx.allowedForSession(call.tool.name)
}

function deniedOutcome(answer: ApprovalAnswer): ToolOutcome {
  if (answer.by === 'cancel') {
    return {
      status: 'failed',
      reason: 'cancelled',
      forModel: 'The user cancelled this call before it was allowed. Nothing was run.',
    }
  }
  const why =
    answer.by === 'expiry'
      ? 'Nobody answered the request to allow this call in time, so it was not run.'
      : answer.by === 'unattended'
        ? 'This call needs the approval of a person, and nobody can give it here, so it was not run.'
        : 'The user did not allow this call, so it was not run.'
  const said =
    answer.reason === undefined || answer.reason.trim() === '' ? '' : ` Their reason: ${answer.reason.trim()}`
  return { status: 'failed', reason: 'denied', forModel: `${why}${said}`, data: { by: answer.by } }
}
