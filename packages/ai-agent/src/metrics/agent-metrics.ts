/**
 * Measures prompts and the agent's own delays in them, in bounded memory. Tools are in
 * `tool-metrics.ts`.
 */
import { END_REASONS, type EndReason } from '@sandlot/shared/chat/reasons'
import type { TokenUsage } from '@sandlot/shared/chat/event-meta'
import type { AgentMetricsAnswer } from '@sandlot/shared/acp/meta'
import { LoopDelay } from '@sandlot/shared/node/loop-delay'
import type { ToolMetrics } from './tool-metrics.ts'
import { Histogram } from './histogram.ts'
import { ModelHealth } from './model-health.ts'
import { prometheusText } from './prometheus-text.ts'
import type { Tracing } from './tracing.ts'
import type { PromptRecord, AgentMetricsReport } from './report.ts'

export class AgentMetrics {
  /**
   * From the last outcome of a turn to the next request, in milliseconds. Ours alone: no provider
   * is in it.
   */
  readonly continuation = new Histogram()
  /** From the last byte of an answer to the start of its first call, in milliseconds. */
  readonly callStart = new Histogram()
  /** From a request to the first piece of its answer, in milliseconds. */
  readonly firstToken = new Histogram()
  readonly health = new ModelHealth()
  readonly #turns = new Histogram()
  readonly #tokens = { input: 0, output: 0, cached: 0, reasoning: 0 }
  readonly #ended = Object.fromEntries(END_REASONS.map((reason) => [reason, 0])) as Record<EndReason, number>
  readonly #loopDelay = new LoopDelay()
  #requests = 0
  #cost = 0
  #unpriced = 0
  /** The same as spans. Absent: nowhere to send them. */
  readonly tracing: Tracing | undefined

  constructor(tracing?: Tracing) {
    this.tracing = tracing
  }

  request(): void {
    this.#requests++
  }

  /** Usage of one answer; a count that the provider did not send is absent. */
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

  /** The metrics for `/metrics` of the service. */
  async scrape(tools: ToolMetrics): Promise<AgentMetricsAnswer> {
    const report = this.report(tools)
    return { text: await prometheusText(report), eventLoopDelayMs: report.eventLoopDelayMs }
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
