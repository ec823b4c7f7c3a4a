/** Metrics since the start, as they are read. */
import type { EndReason } from '@sandlot/shared/chat/reasons'
import type { PromptTiming, TokenUsage } from '@sandlot/shared/chat/event-meta'
import type { LoopDelays } from '@sandlot/shared/node/loop-delay'
import type { ToolStats } from './tool-metrics.ts'
import type { BucketCounts } from './buckets.ts'
import type { Summary } from './histogram.ts'

/** Usage and duration of one prompt. */
export interface PromptRecord extends PromptTiming {
  reason: EndReason
  turns: number
  /** US dollars; null: no price was known. */
  cost: number | null
  /** Summed over its answers, as providers counted. */
  tokens: { input: number; output: number; cached: number; reasoning: number }
}

/**
 * Everything since the start of the process; durations in milliseconds, with the meaning of the
 * histograms below.
 */
export interface AgentMetricsReport {
  tools: ({ tool: string } & ToolStats)[]
  /** To the model, with retries. */
  requests: number
  /** By model; of a kind that its provider never counted there is none. */
  tokens: ReadonlyMap<string, TokenUsage>
  /** Tokens of each answer. `type`: `input` or `output`. */
  tokensPerAnswer: readonly { model: string; type: string; counts: BucketCounts }[]
  /** US dollars, of the answers whose price was known. */
  cost: number
  prompts: { ended: Record<EndReason, number>; turns: Summary; unpriced: number }
  continuationMs: Summary
  callStartMs: Summary
  firstTokenMs: Summary
  /** Since the last report. */
  eventLoopDelayMs: LoopDelays
}
