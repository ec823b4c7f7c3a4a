/**
 * Measures prompts and the agent's own delays in them, in bounded memory. Tools are in
 * `tool-metrics.ts`.
 */
import { END_REASONS, type EndReason } from '@sandlot/shared/chat/reasons'
import type { TokenUsage } from '@sandlot/shared/chat/event-meta'
import type { AgentMetricsAnswer } from '@sandlot/shared/acp/meta'
import { LoopDelay } from '@sandlot/shared/node/loop-delay'
import type { ToolMetrics } from './tool-metrics.ts'
import { Buckets, POWERS_OF_FOUR } from './buckets.ts'
import { Histogram } from './histogram.ts'
import { ModelHealth } from './model-health.ts'
import { prometheusText } from './prometheus-text.ts'
import type { Tracing } from './tracing.ts'
import type { PromptRecord, AgentMetricsReport } from './report.ts'

const COUNTED = ['input', 'output', 'cached', 'cacheWritten', 'reasoning'] as const

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
  readonly #tokens = new Map<string, TokenUsage>()
  /** Tokens of each answer, by model. */
  readonly #perAnswer = new Map<string, { input: Buckets; output: Buckets }>()
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

  /** Usage of one answer of this model; a count that the provider did not send is absent. */
  usage(model: string, usage: TokenUsage): void {
    const tokens = this.#tokens.get(model) ?? {}
    this.#tokens.set(model, tokens)
    for (const kind of COUNTED)
      if (usage[kind] !== undefined) tokens[kind] = (tokens[kind] ?? 0) + usage[kind]
    const perAnswer = this.#perAnswer.get(model) ?? {
      input: new Buckets(POWERS_OF_FOUR),
      output: new Buckets(POWERS_OF_FOUR),
    }
    this.#perAnswer.set(model, perAnswer)
    for (const type of ['input', 'output'] as const)
      if (usage[type] !== undefined) perAnswer[type].add(usage[type])
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
      tokens: structuredClone(this.#tokens),
      tokensPerAnswer: [...this.#perAnswer].flatMap(([model, types]) =>
        Object.entries(types).map(([type, buckets]) => ({ model, type, counts: buckets.counts() })),
      ),
      cost: this.#cost,
      prompts: { ended: { ...this.#ended }, turns: this.#turns.summary(), unpriced: this.#unpriced },
      continuationMs: this.continuation.summary(),
      callStartMs: this.callStart.summary(),
      firstTokenMs: this.firstToken.summary(),
      eventLoopDelayMs: this.#loopDelay.take(),
    }
  }
}
