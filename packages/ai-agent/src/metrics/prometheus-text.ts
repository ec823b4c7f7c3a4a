/** The agent's report as Prometheus text. */
import type * as PromClient from 'prom-client'
import { METRICS, type MetricName } from '@sandlot/shared/node/metrics'
import type { AgentMetricsReport } from './report.ts'
import type { BucketCounts } from './buckets.ts'
import type { Summary } from './histogram.ts'

/** Tools with series of their own: the most used. The others are one. */
const MAX_TOOLS = 50
const OTHER = '(other)'

type Labels = Record<string, string>
type Series<Value> = readonly [labels: Labels, value: Value]
type Tool = AgentMetricsReport['tools'][number]

export async function prometheusText(report: AgentMetricsReport): Promise<string> {
  // Loaded by the first scrape: it costs 25 ms and 2.5 MB, and many agents are never scraped.
  const prometheus = await import('prom-client')
  const registry = new prometheus.Registry()
  const write = writerOf(prometheus, registry)
  writeTools(report.tools, write)
  writeModels(report, write)
  writePrompts(report, write)
  return registry.metrics()
}

interface Writer {
  counter(name: MetricName, series: readonly Series<number>[]): void
  gauge(name: MetricName, series: readonly Series<number>[]): void
  summary(name: MetricName, scale: number, series: readonly Series<Summary>[]): void
  histogram(name: MetricName, series: readonly Series<BucketCounts>[]): void
}

function writerOf(prometheus: typeof PromClient, registry: PromClient.Registry): Writer {
  const registers = [registry]
  const options = (name: MetricName) => ({
    name,
    help: METRICS[name].meaning,
    labelNames: METRICS[name].labels,
    registers,
  })
  return {
    counter(name, series) {
      const metric = new prometheus.Counter(options(name))
      for (const [labels, value] of series) metric.inc(labels, value)
    },
    gauge(name, series) {
      const metric = new prometheus.Gauge(options(name))
      for (const [labels, value] of series) metric.set(labels, value)
    },
    // These quantiles are exact or within 2 %, which the sketch of the library does not promise.
    summary(name, scale, series) {
      const { help } = options(name)
      const metric = new prometheus.Summary({ name, help, registers })
      const values = series.flatMap(([labels, { p50, p95, sum, count }]) => [
        { labels: { ...labels, quantile: '0.5' }, value: p50 / scale },
        { labels: { ...labels, quantile: '0.95' }, value: p95 / scale },
        { labels, metricName: `${name}_sum`, value: sum / scale },
        { labels, metricName: `${name}_count`, value: count },
      ])
      Object.assign(metric, { get: () => Promise.resolve({ name, help, type: 'summary', values }) })
    },
    histogram(name, series) {
      const { help } = options(name)
      const metric = new prometheus.Histogram({ name, help, registers })
      const values = series.flatMap(([labels, { bounds, upTo, count, sum }]) => [
        ...bounds.map((le, place) => ({
          labels: { ...labels, le },
          metricName: `${name}_bucket`,
          value: upTo[place] ?? 0,
        })),
        { labels: { ...labels, le: '+Inf' }, metricName: `${name}_bucket`, value: count },
        { labels, metricName: `${name}_sum`, value: sum },
        { labels, metricName: `${name}_count`, value: count },
      ])
      const get = () => Promise.resolve({ name, help, type: 'histogram', values })
      Object.assign(metric, { get, getForPromString: get })
    },
  }
}

function writeTools(all: readonly Tool[], write: Writer): void {
  const tools = all.toSorted((a, b) => b.count - a.count)
  const shown = tools.slice(0, MAX_TOOLS)
  const rest = tools.slice(MAX_TOOLS)
  const sums = (name: MetricName, valueOf: (tool: Tool) => number): void => {
    const ofRest = rest.reduce((sum, tool) => sum + valueOf(tool), 0)
    write.counter(name, [
      ...shown.map((tool) => [{ tool: tool.tool }, valueOf(tool)] as const),
      ...(rest.length === 0 ? [] : [[{ tool: OTHER }, ofRest] as const]),
    ])
  }
  write.counter('sandlot_tool_calls_total', [
    ...shown.flatMap((tool) => outcomesOf(tool.tool, [tool])),
    ...outcomesOf(OTHER, rest),
  ])
  write.summary(
    'sandlot_tool_run_seconds',
    1_000,
    shown.map((of) => [{ tool: of.tool }, runTimes(of)]),
  )
  write.gauge(
    'sandlot_tool_truncated_ratio',
    shown.map(({ tool, truncationRate }) => [{ tool }, truncationRate]),
  )
  sums('sandlot_tool_output_bytes_total', ({ sizes }) => sizes.sum)
  sums('sandlot_tool_wait_seconds_total', ({ waitMs }) => waitMs / 1_000)
  sums('sandlot_tool_cached_total', ({ cached }) => cached)
  sums('sandlot_tool_retries_total', ({ retries }) => retries)
  write.histogram(
    'sandlot_tool_output_size_bytes',
    shown.map(({ tool, sizes }) => [{ tool }, sizes]),
  )
  write.histogram('gen_ai_execute_tool_duration_seconds', shown.flatMap(durationsOf))
}

/** By the attributes of OpenTelemetry’s conventions. */
function durationsOf({ tool, durations }: Tool): Series<BucketCounts>[] {
  const labels = { gen_ai_operation_name: 'execute_tool', gen_ai_tool_name: tool }
  return [...durations].map(([outcome, counts]) => [
    outcome === 'completed' ? labels : { ...labels, error_type: outcome },
    counts,
  ])
}

function writeModels(report: AgentMetricsReport, write: Writer): void {
  write.counter('sandlot_model_requests_total', [[{}, report.requests]])
  write.counter(
    'sandlot_model_tokens_total',
    [...report.tokens].flatMap(([model, tokens]) =>
      Object.entries(tokens).map(
        ([kind, value]) =>
          [{ kind: kind === 'cacheWritten' ? 'cache_written' : kind, model }, value] as const,
      ),
    ),
  )
  write.histogram(
    'gen_ai_client_token_usage',
    report.tokensPerAnswer.map(({ model, type, counts }) => [
      { gen_ai_operation_name: 'chat', gen_ai_request_model: model, gen_ai_token_type: type },
      counts,
    ]),
  )
  write.counter('sandlot_model_cost_dollars_total', [[{}, report.cost]])
  write.summary('sandlot_model_first_token_seconds', 1_000, [[{}, report.firstTokenMs]])
}

function writePrompts({ prompts, continuationMs, callStartMs }: AgentMetricsReport, write: Writer): void {
  write.counter('sandlot_prompts_unpriced_total', [[{}, prompts.unpriced]])
  write.counter(
    'sandlot_prompts_ended_total',
    Object.entries(prompts.ended).map(([reason, value]) => [{ reason }, value]),
  )
  write.summary('sandlot_prompt_turns', 1, [[{}, prompts.turns]])
  write.summary('sandlot_continuation_seconds', 1_000, [[{}, continuationMs]])
  write.summary('sandlot_call_start_seconds', 1_000, [[{}, callStartMs]])
}

function outcomesOf(tool: string, tools: readonly Tool[]): Series<number>[] {
  const sums = new Map<string, number>()
  for (const { outcomes } of tools)
    for (const [outcome, count] of Object.entries(outcomes))
      sums.set(outcome, (sums.get(outcome) ?? 0) + count)
  return [...sums].map(([outcome, count]) => [{ tool, outcome }, count])
}

function runTimes({ count, meanMs, p50Ms, p95Ms }: Tool): Summary {
  return { count, sum: meanMs * count, mean: meanMs, p50: p50Ms, p95: p95Ms }
}
