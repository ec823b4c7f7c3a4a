/**
 * Tries a call again, for tools that declare that a second time does no harm, and only where the
 * failure itself says that it may pass: never a command, never a write.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { ToolError } from '../../tools/tool-error.ts'
import type { Policy } from '../../tools/tool.ts'

const DEFAULT_RETRIES = 1
/**
 * Longest wait before the first retry, in milliseconds; it doubles, and the wait is anything below
 * it.
 */
const FIRST_WAIT_MS = 500

export function retry(): Policy {
  return (next) =>
    async function* retried(call, ctx) {
      const { idempotent } = call.tool.runs ?? {}
      const most = idempotent === undefined ? 0 : (idempotent.retries ?? DEFAULT_RETRIES)
      for (let retries = 0; ; retries++) {
        try {
          const outcome = yield* next(call, ctx)
          return retries === 0 ? outcome : { ...outcome, retries }
        } catch (thrown) {
          const passing = thrown instanceof ToolError && thrown.transient
          if (!passing || retries >= most || ctx.signal.aborted) throw thrown
          yield { type: 'progress', message: `It failed (${thrown.message}) and is tried again.` }
          await sleep(Math.random() * FIRST_WAIT_MS * 2 ** retries, undefined, { signal: ctx.signal })
        }
      }
    }
}
