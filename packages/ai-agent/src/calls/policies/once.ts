/**
 * A call that had begun when an earlier process died is not begun again, unless that does no harm:
 * it changes nothing, it leaves the same when it is made twice, it had not come as far as an
 * attempt, or the sandbox knows what became of it. Whether any other call had its effect is
 * unknown, and a guess could do it twice. That its tool is gone by now, takes other arguments, or
 * may not be asked any more, says nothing of what it did.
 */
import { ToolError } from '../../tools/tool-error.ts'
import type { CallContext, Policy, ToolCall } from '../../tools/tool.ts'

export function once(): Policy {
  return (next) =>
    async function* onceOnly(call, ctx) {
      if (!call.begunBefore) return yield* next(call, ctx)
      if (!mayBeginAgain(call, ctx)) throw unknownEffect()
      try {
        return yield* next(call, ctx)
      } catch (thrown) {
        const untrue = thrown instanceof ToolError && thrown.unasked && !call.tool.readOnly
        throw untrue ? unknownEffect() : thrown
      }
    }
}

function mayBeginAgain({ tool, refusal }: ToolCall, ctx: CallContext): boolean {
  // It was no call to refuse when it began: its tool is gone, and with it what is known of it.
  if (refusal !== undefined) return false
  return (
    tool.readOnly ||
    tool.runs?.repeatable === true ||
    tool.runs?.idempotent !== undefined ||
    ctx.previous !== undefined
  )
}

function unknownEffect(): ToolError {
  return new ToolError(
    'unknown_effect',
    'A restart interrupted this call. Whether it had its effect is not known: look before you make it again.',
  )
}
