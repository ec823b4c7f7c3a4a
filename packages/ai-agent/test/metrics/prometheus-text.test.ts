import { describe, expect, test } from 'vitest'
import type { AgentMetricsReport } from '../../src/metrics/report.ts'
import { Buckets, POWERS_OF_FOUR, SECONDS } from '../../src/metrics/buckets.ts'
import { prometheusText } from '../../src/metrics/prometheus-text.ts'
import { createToolMetrics } from '../../src/metrics/tool-metrics.ts'

const NOTHING = { count: 0, sum: 0, mean: 0, p50: 0, p95: 0 }

const tool = (name: string, count = 1): AgentMetricsReport['tools'][number] => ({
  tool: name,
  count,
  successRate: 1,
  meanMs: 500,
  p50Ms: 400,
  p95Ms: 900,
  waitMs: 250 * count,
  truncationRate: 0.25,
  cached: count / 2,
  retries: 2,
  outcomes: { completed: count - 1, timeout: 1 },
  sizes: new Buckets(POWERS_OF_FOUR).counts(),
  durations: new Map(),
})

const report = (tools: AgentMetricsReport['tools']): AgentMetricsReport => ({
  tools,
  requests: 7,
  tokens: new Map([
    ['gpt-5', { input: 10, output: 20, cached: 5, cacheWritten: 2 }],
    ['local', { input: 1 }],
  ]),
  tokensPerAnswer: [],
  cost: 0.5,
  prompts: {
    ended: {
      completed: 2,
      cancelled: 0,
      interrupted: 0,
      max_turns: 0,
      budget: 0,
      loop: 0,
      length: 0,
      refusal: 0,
      error: 1,
    },
    turns: { count: 3, sum: 9, mean: 3, p50: 3, p95: 4 },
    unpriced: 1,
  },
  continuationMs: { count: 4, sum: 8, mean: 2, p50: 1, p95: 5 },
  callStartMs: NOTHING,
  firstTokenMs: NOTHING,
  eventLoopDelayMs: { p50: 1, p99: 20, max: 500 },
})

describe('the agent’s metrics as Prometheus text', () => {
  test('have names with units, and seconds in place of milliseconds', async () => {
    const text = await prometheusText(report([tool('run_shell_command', 4)]))
    for (const line of [
      '# TYPE sandlot_tool_calls_total counter',
      'sandlot_tool_calls_total{tool="run_shell_command",outcome="completed"} 3',
      'sandlot_tool_calls_total{tool="run_shell_command",outcome="timeout"} 1',
      'sandlot_tool_run_seconds{tool="run_shell_command",quantile="0.95"} 0.9',
      'sandlot_tool_run_seconds_sum{tool="run_shell_command"} 2',
      'sandlot_tool_run_seconds_count{tool="run_shell_command"} 4',
      'sandlot_tool_truncated_ratio{tool="run_shell_command"} 0.25',
      'sandlot_tool_wait_seconds_total{tool="run_shell_command"} 1',
      'sandlot_tool_cached_total{tool="run_shell_command"} 2',
      'sandlot_model_tokens_total{kind="cached",model="gpt-5"} 5',
      'sandlot_model_tokens_total{kind="cache_written",model="gpt-5"} 2',
      'sandlot_model_tokens_total{kind="input",model="local"} 1',
      'sandlot_prompts_ended_total{reason="error"} 1',
      'sandlot_continuation_seconds{quantile="0.95"} 0.005',
      'sandlot_continuation_seconds_count 4',
      'sandlot_prompt_turns_sum 9',
    ])
      expect(text.split('\n')).toContain(line)
    // Unknown, not 0: its provider does not count them.
    expect(text).not.toContain('{kind="cached",model="local"}')
  })

  test('a thousand tools are fifty series and one for the others; nothing is lost', async () => {
    const text = await prometheusText(report(Array.from({ length: 1_000 }, (_, n) => tool(`t${n}`, n + 1))))
    const calls = text.split('\n').filter((line) => line.startsWith('sandlot_tool_calls_total{'))
    expect(new Set(calls.map((line) => /tool="([^"]*)"/.exec(line)?.[1])).size).toBe(51)
    expect(calls.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)).toBe((1_000 * 1_001) / 2)
    expect(text.split('\n').length).toBeLessThan(2_000)
  })

  test('distributions count every value once, whatever its size, and keep their sum', async () => {
    const metrics = createToolMetrics()
    const call = {
      tool: 'grep',
      outcome: 'completed',
      waitMs: 0,
      truncated: false,
      cached: false,
      retries: 0,
    } as const
    for (const [bytes, runMs] of [
      [0, 5],
      [1, 10],
      [4, 11],
      [5, 1_000_000],
      [1e12, 0],
    ] as const)
      metrics.record({ ...call, bytes, runMs })
    metrics.record({ ...call, outcome: 'timeout', bytes: 0, runMs: 60_000 })
    const usage = new Buckets(POWERS_OF_FOUR)
    for (const tokens of [3, 17]) usage.add(tokens)
    const text = await prometheusText({
      ...report([{ tool: 'grep', ...metrics.getStats('grep') }]),
      tokensPerAnswer: [{ model: 'gpt-5', type: 'input', counts: usage.counts() }],
    })
    const completed = 'gen_ai_operation_name="execute_tool",gen_ai_tool_name="grep"'
    const asked = 'gen_ai_operation_name="chat",gen_ai_request_model="gpt-5",gen_ai_token_type="input"'
    for (const line of [
      '# TYPE sandlot_tool_output_size_bytes histogram',
      'sandlot_tool_output_size_bytes_bucket{tool="grep",le="1"} 1',
      'sandlot_tool_output_size_bytes_bucket{tool="grep",le="4"} 2',
      'sandlot_tool_output_size_bytes_bucket{tool="grep",le="16"} 3',
      'sandlot_tool_output_size_bytes_bucket{tool="grep",le="67108864"} 3',
      'sandlot_tool_output_size_bytes_bucket{tool="grep",le="+Inf"} 4',
      'sandlot_tool_output_size_bytes_sum{tool="grep"} 1000000000010',
      'sandlot_tool_output_size_bytes_count{tool="grep"} 4',
      `gen_ai_execute_tool_duration_seconds_bucket{${completed},le="0.01"} 3`,
      `gen_ai_execute_tool_duration_seconds_bucket{${completed},le="81.92"} 4`,
      `gen_ai_execute_tool_duration_seconds_count{${completed}} 5`,
      `gen_ai_execute_tool_duration_seconds_count{${completed},error_type="timeout"} 1`,
      `gen_ai_client_token_usage_bucket{${asked},le="4"} 1`,
      `gen_ai_client_token_usage_bucket{${asked},le="64"} 2`,
      `gen_ai_client_token_usage_sum{${asked}} 20`,
    ])
      expect(text.split('\n')).toContain(line)
    expect(SECONDS.at(-1)).toBe(81.92)
  })

  test('a name with quotes and line ends stays on its line', async () => {
    const text = await prometheusText(report([tool('a"b\\c\nd')]))
    expect(text).toContain('tool="a\\"b\\\\c\\nd"')
  })
})
