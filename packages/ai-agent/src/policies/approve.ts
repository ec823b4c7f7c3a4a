/**
 * Runs what the rules and the mode allow, refuses what they deny, and asks the user about the rest. The question is in
 * the log before anybody sees it and survives a restart; the answer, its time limit and who may give it are the session's
 * business, what the rules say is the engine's.
 */
import { notStartedText } from '../tools/call-failure.ts'
import { orAborted } from '../tools/or-aborted.ts'
import type { ApprovalAnswer, CallContext, Policy, Ruling, ToolCall, ToolOutcome } from '../tools/tool.ts'

export function approve(ttlMs: number): Policy {
  return (next) =>
    async function* approved(call, ctx) {
      const ruling = await rulingOf(call, ctx)
      if (ruling?.verdict === 'allow') return yield* next(call, ctx)
      if (ruling?.verdict === 'deny' || ruling?.verdict === 'block') return forbiddenOutcome(ruling)
      if (ruling !== undefined) {
        const { options, why } = ruling
        yield { type: 'approval_asked', options, why, expiresAt: ctx.now() + ttlMs }
      }
      const answer = await ctx.clock.wait(orAborted(ctx.approval.answer(), ctx.signal))
      return answer.allowed ? yield* next(call, ctx) : deniedOutcome(answer)
    }
}

const ALLOWED: Ruling = { verdict: 'allow', why: [], options: [] }

/** Undefined when it was asked before a restart: what the log says counts, even if rules and mode have changed since. */
async function rulingOf(call: ToolCall, ctx: CallContext): Promise<Ruling | undefined> {
  // It has asked something of its own, so it was let run.
  if (ctx.approval.question === true) return ALLOWED
  if (ctx.approval.state !== 'none') return undefined
  // It began before a restart, so it was allowed then.
  if (ctx.resumed !== undefined || ctx.begunBefore === true) return ALLOWED
  return orAborted(ctx.judge(call), ctx.signal)
}

function forbiddenOutcome({ verdict, why }: Ruling): ToolOutcome {
  const reasons = why.map(({ part, because }) => `${part} ${because}`).join('; ')
  return {
    status: 'failed',
    reason: 'denied',
    forModel: `This call is not allowed here, so it was not run: ${reasons}. Nobody can allow it in this session; find another way, or tell the user.`,
    data: { by: verdict === 'block' ? 'block' : 'rule', why },
  }
}

function deniedOutcome(answer: ApprovalAnswer): ToolOutcome {
  if (answer.by === 'cancel') {
    return {
      status: 'failed',
      reason: 'cancelled',
      forModel: notStartedText('cancelled'),
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
