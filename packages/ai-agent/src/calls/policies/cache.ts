/**
 * Answers a call again from an earlier one with the same arguments, for tools that declare it. Kept
 * per user; any call of that user that may change something drops all of it.
 */
import { LRUCache } from 'lru-cache'
import { canonicalJson } from '../../model/json.ts'
import { type Policy, type ToolCall, type ToolOutcome, idOf } from '../../tools/tool.ts'

const DEFAULT_TTL_MS = 300_000
const MAX_ENTRIES = 1_000
/** Characters of all results together. */
const MAX_CHARS = 20_000_000
const MAX_USERS = 10_000

/** `now`: milliseconds on a clock that never jumps. */
export function cache(now: () => number = () => performance.now()): Policy {
  const outcomes = new LRUCache<string, ToolOutcome>({
    max: MAX_ENTRIES,
    maxSize: MAX_CHARS,
    perf: { now },
    // The clock is asked each time: it costs less than a look into the cache.
    ttlResolution: 0,
    sizeCalculation: (outcome, key) => key.length + JSON.stringify(outcome).length,
  })
  /**
   * A number for a user's state since their last change. A number is given once, so that a
   * forgotten user finds nothing old.
   */
  const generations = new LRUCache<string, number>({ max: MAX_USERS })
  let last = 0
  const changed = (userId: string): void => void generations.set(userId, ++last)
  const generationOf = (userId: string): number => {
    if (!generations.has(userId)) changed(userId)
    return generations.get(userId) ?? 0
  }

  return (next) =>
    async function* cached(call, ctx) {
      const { tool } = call
      if (!tool.readOnly) {
        changed(ctx.ids.userId)
        try {
          return yield* next(call, ctx)
        } finally {
          // A result read while it ran may be from before it.
          changed(ctx.ids.userId)
        }
      }
      const { cache: caching } = tool.runs ?? {}
      if (caching === undefined) return yield* next(call, ctx)
      const generation = generationOf(ctx.ids.userId)
      const key = keyOf(ctx.ids.userId, generation, call)
      const known = outcomes.get(key)
      if (known !== undefined) {
        yield { type: 'started' }
        return { ...known, cached: true }
      }
      const outcome = yield* next(call, ctx)
      // An output is stored under the call that made it, and is not another call's.
      if (
        outcome.status === 'completed' &&
        outcome.outputInfo === undefined &&
        generationOf(ctx.ids.userId) === generation
      )
        outcomes.set(key, outcome, { ttl: caching.ttlMs ?? DEFAULT_TTL_MS })
      return outcome
    }
}

function keyOf(userId: string, generation: number, { tool, args }: ToolCall): string {
  return canonicalJson([userId, generation, idOf(tool), tool.runs?.cache?.version ?? '', args])
}
