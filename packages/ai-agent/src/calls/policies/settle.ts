/**
 * Turns anything thrown, anywhere inside, into an outcome: every call gets one, always.
 */
import { SHUTDOWN, isShutdown, outcomeOfThrown } from '../../tools/tool-error.ts'
import type { Policy } from '../../tools/tool.ts'

export function settle(): Policy {
  return (next) =>
    async function* settled(call, ctx) {
      try {
        return yield* next(call, ctx)
      } catch (thrown) {
        // A shutdown is the one end that is not an outcome: the call continues after the next
        // start.
        if (isShutdown(ctx.signal)) throw SHUTDOWN
        return outcomeOfThrown(thrown, ctx.signal, ctx.log, call.hasBegun())
      }
    }
}
