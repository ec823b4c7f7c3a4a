/**
 * Counts every call, also invalid and denied ones, with waiting apart from running, and writes one
 * log line per call: tool, duration, outcome. Arguments and results are never logged.
 */
import { isShutdown, outcomeOfThrown } from '../../tools/tool-error.ts'
import { type CallContext, type Policy, type ToolCall, type ToolOutcome, idOf } from '../../tools/tool.ts'
import type { ToolMetrics } from '../../metrics/tool-metrics.ts'

export function metrics(into: ToolMetrics): Policy {
  return (next) =>
    async function* measured(call, ctx) {
      let outcome: ToolOutcome
      try {
        outcome = yield* next(call, ctx)
      } catch (thrown) {
        if (isShutdown(ctx.signal)) throw thrown
        // Counted as the outcome that `settle` will make of it, with its duration.
        outcome = outcomeOfThrown(thrown, ctx.signal, ctx.log, call.hasBegun())
      }
      const timing = call.clock.timing()
      const result = outcome.status === 'completed' ? 'completed' : outcome.reason
      const truncated = outcome.outputInfo?.truncated ?? false
      const bytes = outcome.outputInfo?.bytes ?? 0
      const { cached = false, retries = 0 } = outcome
      into.record({ tool: idOf(call.tool), outcome: result, ...timing, bytes, truncated, cached, retries })
      const { runMs: latency, waitMs } = timing
      logCall(call, ctx, { outcome: result, latency, waitMs, bytes, truncated, cached, retries })
      return {
        ...outcome,
        timing: { ...timing, ...(cached ? { cached } : {}), ...(retries === 0 ? {} : { retries }) },
      }
    }
}

function logCall(
  call: ToolCall,
  ctx: CallContext,
  fields: { outcome: string; latency: number } & Record<string, unknown>,
): void {
  const { outcome } = fields
  const event = outcome === 'completed' ? 'tool_invocation_success' : 'tool_invocation_failure'
  const { sessionId, promptId: correlationId } = ctx.ids
  ctx.log.info(
    { event, correlationId, sessionId, callId: call.callId, tool: idOf(call.tool), ...fields },
    'tool call ended',
  )
}
