/** What the agent measures of prompts and of its own part in them, in bounded memory. Tools are counted in `policies/`. */
import { END_REASONS, type EndReason } from '@sandlot/shared/reasons'
import type { PromptTiming, TokenUsage } from '@sandlot/shared/event-meta'
import type { AgentMetricsReport } from '@sandlot/shared/agent-metrics'
import { LoopDelay } from '@sandlot/shared/node/loop-delay'
import type { ToolMetrics } from '../calls/policies/tool-metrics.ts'
import { Histogram } from './histogram.ts'

/** What one prompt used up, and how long it took. */
export interface PromptRecord extends PromptTiming {
  reason: EndReason
  turns: number
  /** US dollars; null: no price was known. */
  cost: number | null
  /** Summed over its answers, as providers counted. */
  tokens: { input: number; output: number; cached: number; reasoning: number }
}

export class AgentMetrics {
  /** From the last outcome of a turn to the next request, in milliseconds. Ours alone: no provider is in it. */
  readonly continuation = new Histogram()
  /** From the last byte of an answer to the start of its first call, in milliseconds. */
  readonly callStart = new Histogram()
  /** From a request to the first piece of its answer, in milliseconds. */
  readonly firstToken = new Histogram()
  readonly #turns = new Histogram()
  readonly #tokens = { input: 0, output: 0, cached: 0, reasoning: 0 }
  readonly #ended = Object.fromEntries(END_REASONS.map((reason) => [reason, 0])) as Record<EndReason, number>
  readonly #loopDelay = new LoopDelay()
  #requests = 0
  #cost = 0
  #unpriced = 0

  request(): void {
    this.#requests++
  }

  /** Of one answer; what the provider did not count is absent. */
  usage(usage: TokenUsage): void {
    for (const kind of ['input', 'output', 'cached', 'reasoning'] as const)
      this.#tokens[kind] += usage[kind] ?? 0
  }

  prompt({ reason, turns, cost }: PromptRecord): void {
    this.#ended[reason]++
    this.#turns.add(turns)
    if (cost === null) this.#unpriced++
    else this.#cost += cost
  }

  report(tools: ToolMetrics): AgentMetricsReport {
    return {
      tools: tools.tools().map((tool) => ({ tool, ...tools.getStats(tool) })),
      requests: this.#requests,
      tokens: { ...this.#tokens },
      cost: this.#cost,
      prompts: { ended: { ...this.#ended }, turns: this.#turns.summary(), unpriced: this.#unpriced },
      continuationMs: this.continuation.summary(),
      callStartMs: this.callStart.summary(),
      firstTokenMs: this.firstToken.summary(),
      eventLoopDelayMs: this.#loopDelay.take(),
    }
  }
}
