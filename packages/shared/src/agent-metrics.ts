/** `_sandlot/metrics`: what the agent has counted since it started. Names of tools, numbers, nothing of anybody. */
import { z } from 'zod'
import { endReason } from './reasons.ts'

const amount = z.number().nonnegative()

/** Of durations in milliseconds, or of counts. All 0 without values; percentiles within 2 %. */
export const metricSummary = z.object({ count: amount, sum: amount, mean: amount, p50: amount, p95: amount })

export const agentMetricsReport = z.object({
  tools: z.array(
    z.object({
      /** Its id. */
      tool: z.string(),
      count: amount,
      /** 0–1, as the other rates. */
      successRate: amount,
      meanMs: amount,
      p50Ms: amount,
      p95Ms: amount,
      meanWaitMs: amount,
      truncationRate: amount,
      cacheRate: amount,
      retries: amount,
      /** Calls by outcome: `completed`, or the reason of a failure. */
      outcomes: z.record(z.string(), amount),
    }),
  ),
  requests: amount,
  tokens: z.object({ input: amount, output: amount, cached: amount, reasoning: amount }),
  /** US dollars, of the answers whose price was known. */
  cost: amount,
  prompts: z.object({
    ended: z.record(endReason, amount),
    turns: metricSummary,
    /** Prompts for which no price was known. */
    unpriced: amount,
  }),
  /** From the last outcome of a turn to the next request. */
  continuationMs: metricSummary,
  /** From the last byte of an answer to the start of its first call. */
  callStartMs: metricSummary,
  /** From a request to the first piece of its answer. */
  firstTokenMs: metricSummary,
  /** For how long the agent's event loop was held, since this was asked last. */
  eventLoopDelayMs: z.object({ p50: amount, p99: amount, max: amount }),
})
export type AgentMetricsReport = z.infer<typeof agentMetricsReport>
