/**
 * Where the order of the model begins: what stands outside of this asks and refuses for all calls
 * of a turn at once, what stands inside runs when it is the call's turn.
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
