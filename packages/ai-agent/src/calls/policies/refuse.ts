/** Refuses a call over the prompt's budget, or after a failure that ends the prompt. */
import { ToolError } from '../../tools/tool-error.ts'
import type { Policy } from '../../tools/tool.ts'

export function refuse(): Policy {
  return (next) =>
    async function* refused(call, ctx) {
      // A call that ran before a restart continues: a refusal would be untrue.
      const refusal = ctx.previous === undefined ? await call.refusalNow() : undefined
      if (refusal !== undefined) throw new ToolError(refusal.reason, refusal.message, { unasked: true })
      return yield* next(call, ctx)
    }
}
