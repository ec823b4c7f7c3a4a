/**
 * The start of the model's order: policies outside of this one ask and refuse for all calls of a
 * turn at once, those inside run when it is the call's turn.
 */
import { orAborted } from '@sandlot/shared/async/or-aborted'
import type { Policy } from '../../tools/tool.ts'

export function inOrder(): Policy {
  return (next) =>
    async function* ordered(call, ctx) {
      await call.clock.wait(orAborted(call.inOrder(), ctx.signal))
      return yield* next(call, ctx)
    }
}
