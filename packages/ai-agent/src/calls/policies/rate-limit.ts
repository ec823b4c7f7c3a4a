/**
 * A bucket of calls per tool and user, for tools that declare one. An empty bucket is a result with
 * the wait, no exception.
 */
import { LRUCache } from 'lru-cache'
import { ToolError } from '../../tools/tool-error.ts'
import { type Policy, type RateLimit, idOf } from '../../tools/tool.ts'

/** Buckets that are kept; a full one is as good as none. */
const MAX_BUCKETS = 10_000

interface Bucket {
  /** Calls that may be made now, in fractions. */
  calls: number
  /** When `calls` was right, in milliseconds. */
  at: number
}

/** `now`: milliseconds on a clock that never jumps. */
export function rateLimit(now: () => number = () => performance.now()): Policy {
  const buckets = new LRUCache<string, Bucket>({ max: MAX_BUCKETS })

  /** Milliseconds to wait; 0 when a call was taken from the bucket. */
  function take(key: string, { calls, perMs }: RateLimit): number {
    const at = now()
    const last = buckets.get(key) ?? { calls, at }
    const filled = Math.min(calls, last.calls + ((at - last.at) * calls) / perMs)
    const allowed = filled >= 1
    buckets.set(key, { calls: allowed ? filled - 1 : filled, at })
    return allowed ? 0 : Math.ceil(((1 - filled) * perMs) / calls)
  }

  return (next) =>
    async function* limited(call, ctx) {
      const limit = call.tool.runs?.rateLimit
      // One that began before a restart was counted then.
      if (limit !== undefined && ctx.previous === undefined) {
        const waitMs = take(JSON.stringify([ctx.ids.userId, idOf(call.tool)]), limit)
        if (waitMs > 0)
          throw new ToolError(
            'rate_limited',
            `${call.name} may be called ${limit.calls} times in ${limit.perMs / 1000} seconds. It was not called; try again in ${Math.ceil(waitMs / 1000)} seconds, or do without it.`,
            { unasked: true },
          )
      }
      return yield* next(call, ctx)
    }
}
