/**
 * What the agent counts, as Prometheus text. The agent reports summaries, which prom-client cannot take in, so the lines are
 * written here. Labels are tools, outcomes and end reasons only: nothing of a user, and never more than a few hundred series.
 */
import type { AgentMetricsReport } from '@sandlot/shared/agent-metrics'
import type { LoopDelays } from '@sandlot/shared/node/loop-delay'

/** Tools with series of their own: the most used. The others are one. */
const MAX_TOOLS = 50
const OTHER = '(other)'

type Labels = Record<string, string>
type Sample = [labels: Labels, value: number, suffix?: '_sum' | '_count']
type Tool = AgentMetricsReport['tools'][number]

/** `ours`: of the service itself, which reads the report. */
export function loopDelayText(ours: LoopDelays, agents: LoopDelays | undefined): string {
  const of = (process: string, { p50, p99, max }: LoopDelays): Sample[] => [
    [{ process, quantile: '0.5' }, p50 / 1_000],
    [{ process, quantile: '0.99' }, p99 / 1_000],
    [{ process, quantile: '1' }, max / 1_000],
  ]
  return family(
    'sandlot_event_loop_delay_seconds',
    'gauge',
    'For how long the event loop was held, since the last scrape',
    [...of('service', ours), ...(agents === undefined ? [] : of('agent', agents))],
  )
}

export function agentMetricsText(report: AgentMetricsReport): string {
  const tools = report.tools.toSorted((a, b) => b.count - a.count)
  const shown = tools.slice(0, MAX_TOOLS)
  const rest = tools.slice(MAX_TOOLS)
  const { prompts } = report
  return [
    family('sandlot_tool_calls_total', 'counter', 'Tool calls by tool and outcome', [
      ...shown.flatMap((tool) => outcomesOf(tool.tool, [tool])),
      ...outcomesOf(OTHER, rest),
    ]),
    family(
      'sandlot_tool_run_seconds',
      'summary',
      'Running time of tool calls, without waiting',
      shown.flatMap((tool) => runTimes(tool)),
    ),
    family(
      'sandlot_tool_truncated_ratio',
      'gauge',
      'Share of the calls of a tool whose output was cut',
      shown.map(({ tool, truncationRate }) => [{ tool }, truncationRate]),
    ),
    family('sandlot_tool_retries_total', 'counter', 'Tries of tool calls beyond the first', [
      ...shown.map(({ tool, retries }): Sample => [{ tool }, retries]),
      ...(rest.length === 0 ? [] : [[{ tool: OTHER }, total(rest, 'retries')] satisfies Sample]),
    ]),
    family('sandlot_model_requests_total', 'counter', 'Requests to the model, with retries', [
      [{}, report.requests],
    ]),
    family(
      'sandlot_model_tokens_total',
      'counter',
      'Tokens as providers counted them; cached are part of input, reasoning of output',
      Object.entries(report.tokens).map(([kind, value]) => [{ kind }, value]),
    ),
    family('sandlot_model_cost_dollars_total', 'counter', 'Cost of answers whose price was known', [
      [{}, report.cost],
    ]),
    family('sandlot_prompts_unpriced_total', 'counter', 'Prompts for which no price was known', [
      [{}, prompts.unpriced],
    ]),
    family(
      'sandlot_prompts_ended_total',
      'counter',
      'Prompts by the reason of their end',
      Object.entries(prompts.ended).map(([reason, value]) => [{ reason }, value ?? 0]),
    ),
    family(
      'sandlot_prompt_turns',
      'summary',
      'Answers of the model in one prompt',
      summary(prompts.turns, 1),
    ),
    family(
      'sandlot_continuation_seconds',
      'summary',
      'From the last outcome of a turn to the next request to the model',
      summary(report.continuationMs, 1_000),
    ),
    family(
      'sandlot_call_start_seconds',
      'summary',
      'From the last byte of an answer to the start of its first call',
      summary(report.callStartMs, 1_000),
    ),
    family(
      'sandlot_model_first_token_seconds',
      'summary',
      'From a request to the first piece of its answer',
      summary(report.firstTokenMs, 1_000),
    ),
  ].join('')
}

function outcomesOf(tool: string, tools: readonly Tool[]): Sample[] {
  const sums = new Map<string, number>()
  for (const { outcomes } of tools)
    for (const [outcome, count] of Object.entries(outcomes))
      sums.set(outcome, (sums.get(outcome) ?? 0) + count)
  return [...sums].map(([outcome, count]) => [{ tool, outcome }, count])
}

function total(tools: readonly Tool[], field: 'retries'): number {
  return tools.reduce((sum, tool) => sum + tool[field], 0)
}

function runTimes({ tool, count, meanMs, p50Ms, p95Ms }: Tool): Sample[] {
  const of = { count, sum: meanMs * count, mean: meanMs, p50: p50Ms, p95: p95Ms }
  return summary(of, 1_000, { tool })
}

/** `per`: how many of the report's units are one of ours. */
function summary(of: AgentMetricsReport['continuationMs'], per: number, labels: Labels = {}): Sample[] {
  return [
    [{ ...labels, quantile: '0.5' }, of.p50 / per],
    [{ ...labels, quantile: '0.95' }, of.p95 / per],
    [labels, of.sum / per, '_sum'],
    [labels, of.count, '_count'],
  ]
}

function family(name: string, type: string, help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value, suffix = '']) => `${name}${suffix}${written(labels)} ${value}`)
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n')
}

function written(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
