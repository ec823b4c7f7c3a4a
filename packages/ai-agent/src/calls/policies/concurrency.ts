/**
 * Limits concurrent calls of one tool, for tools that declare a limit. Queued calls count as
 * waiting time.
 */
import { orAborted } from '@sandlot/shared/async/or-aborted'
import { idOf, type Policy } from '../../tools/tool.ts'

export function concurrency(): Policy {
  const running = new Map<string, number>()
  const waiting = new Map<string, (() => void)[]>()

  const leave = (id: string): void => {
    const next = waiting.get(id)?.shift()
    // The place goes to the next one, without being free in between.
    if (next !== undefined) return next()
    const left = (running.get(id) ?? 1) - 1
    if (left > 0) running.set(id, left)
    else running.delete(id)
  }

  return (next) =>
    async function* oneOfFew(call, ctx) {
      const id = idOf(call.tool)
      const most = call.tool.runs?.concurrency
      if (most === undefined) return yield* next(call, ctx)
      if ((running.get(id) ?? 0) < most) {
        running.set(id, (running.get(id) ?? 0) + 1)
      } else {
        const turn = Promise.withResolvers<void>()
        const line = waiting.get(id) ?? []
        line.push(turn.resolve)
        waiting.set(id, line)
        try {
          await call.clock.wait(orAborted(turn.promise, ctx.signal))
        } catch (error) {
          const still = waiting.get(id) ?? []
          // Its turn may have come together with the abort: then the place is passed on.
          if (still.includes(turn.resolve))
            waiting.set(
              id,
              still.filter((one) => one !== turn.resolve),
            )
          else leave(id)
          throw error
        }
      }
      try {
        return yield* next(call, ctx)
      } finally {
        leave(id)
      }
    }
}
