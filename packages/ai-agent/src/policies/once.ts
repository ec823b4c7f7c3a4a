/**
 * A call that had begun when an earlier process died is not begun again, unless that does no harm: it changes nothing, it
 * leaves the same when it is made twice, it had not come as far as an attempt, or the sandbox knows what became of it. Whether any other call had its effect
 * nobody knows, and a guess could do it twice.
 */
import { CallFailure } from '../tools/call-failure.ts'
import type { CallContext, Policy, Tool } from '../tools/tool.ts'

export function once(): Policy {
  return (next) =>
    async function* onceOnly(call, ctx) {
      if (ctx.begunBefore === true && !mayBeginAgain(call.tool, ctx)) {
        throw new CallFailure(
          'unknown_effect',
          'A restart interrupted this call. Whether it had its effect is not known: look before you make it again.',
        )
      }
      return yield* next(call, ctx)
    }
}

function mayBeginAgain(tool: Tool, ctx: CallContext): boolean {
  return (
    tool.readOnly || tool.repeatable === true || tool.idempotent !== undefined || ctx.resumed !== undefined
  )
}
