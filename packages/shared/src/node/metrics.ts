/**
 * Metrics of `/metrics`: the processes register them from this table, and test/write-docs.ts writes
 * the dashboard, the alert rules and the table in docs/watching.md. No label has user data.
 */

/**
 * PromQL in which `{…}` is the metric of the row with its job, `once(…)` counts once what several
 * services report of one agent, and `$i` is the interval of a rate.
 */
type Query = string

interface Panel {
  /** Queries of one title are in one panel. */
  title: string
  query: Query
  /** Without it the labels that the query is by. */
  legend?: string
  note?: string
  /** A Grafana unit; default: operations per second. */
  unit?: string
  /** One number in the first row, red below `redBelow`. */
  stat?: { redBelow?: number }
}

interface Alert {
  name: string
  when: Query
  for?: string
  severity: 'critical' | 'warning' | 'info'
  summary: string
  fix: string
}

interface Metric {
  kind: 'counter' | 'gauge' | 'histogram' | 'summary'
  labels: readonly string[]
  meaning: string
  panels?: readonly Panel[]
  alerts?: readonly Alert[]
}

/** In the order of the dashboard. */
export const METRICS = {
  up: {
    kind: 'gauge',
    labels: [],
    meaning: '1 while Prometheus can scrape the service; its own metric',
    alerts: [
      {
        name: 'SandlotDown',
        when: '{} == 0',
        for: '2m',
        severity: 'critical',
        summary: 'Sandlot does not answer its metrics.',
        fix: 'Run ./sandlot doctor, or docker compose ps; then see the log of the service.',
      },
    ],
  },
  sandlot_agent_connected: {
    kind: 'gauge',
    labels: [],
    meaning: '1 while the service reaches the agent',
    panels: [
      {
        title: 'Agent',
        note: '1 while the service reaches the agent',
        unit: 'short',
        query: 'min({})',
        stat: { redBelow: 1 },
      },
    ],
    alerts: [
      {
        name: 'SandlotAgentAway',
        when: '{} == 0',
        for: '2m',
        severity: 'critical',
        summary: 'The service does not reach the agent, so nobody’s prompts run.',
        fix: 'See the log of the agent; ./sandlot doctor checks the machine.',
      },
    ],
  },
  sandlot_prompts_ended_total: {
    kind: 'counter',
    labels: ['reason'],
    meaning: 'ended prompts by reason',
    panels: [
      { title: 'Prompts in the last hour', unit: 'short', query: 'sum(once(increase({}[1h])))', stat: {} },
      {
        title: 'Failed of them',
        unit: 'percentunit',
        query: 'sum(once(increase({reason="error"}[1h]))) / sum(once(increase({}[1h])))',
        stat: {},
      },
      { title: 'Prompts by how they ended', query: 'sum by (reason) (once(rate({}[$i])))' },
    ],
    alerts: [
      {
        name: 'SandlotPromptsFail',
        when: 'sum(once(increase({reason="error"}[15m]))) > 0.2 * sum(once(increase({}[15m]))) > 1',
        for: '5m',
        severity: 'critical',
        summary: 'More than a fifth of the prompts of the last 15 minutes ended with an error.',
        fix: 'Test the endpoint in Settings, Models; the key may have run out.',
      },
    ],
  },
  sandlot_model_first_token_seconds: {
    kind: 'summary',
    labels: [],
    meaning: 'from a request to the model to the first piece of its answer',
    panels: [
      {
        title: 'First piece of an answer',
        query: 'max({quantile="0.5"})',
        legend: 'p50',
        unit: 's',
        note: 'From a request to the model, since the agent started',
      },
      { title: 'First piece of an answer', query: 'max({quantile="0.95"})', legend: 'p95' },
    ],
    alerts: [
      {
        name: 'SandlotModelSlow',
        when: 'max({quantile="0.95"}) > 30',
        for: '15m',
        severity: 'warning',
        summary: 'One in twenty answers begins later than half a minute after its request.',
        fix: 'Ask the provider, or put models.fallbacks into the configuration file.',
      },
    ],
  },
  sandlot_model_tokens_total: {
    kind: 'counter',
    labels: ['kind', 'model'],
    meaning:
      'input, output, cached and cache_written (parts of input) and reasoning (part of output), as far as providers count',
    panels: [
      {
        title: 'Tokens',
        note: 'A second; cached are part of input, reasoning of output',
        unit: 'short',
        query: 'sum by (kind) (once(rate({}[$i])))',
      },
      {
        title: 'Input read from cache',
        note: 'Share of the input of models whose provider counts it',
        unit: 'percentunit',
        query:
          'sum by (model) (once(rate({kind="cached"}[$i]))) / sum by (model) (once(rate({kind="input"}[$i])))',
      },
    ],
  },
  sandlot_model_requests_total: {
    kind: 'counter',
    labels: [],
    meaning: 'requests to the model, with retries',
    panels: [{ title: 'Requests to the model', query: 'sum(once(rate({}[$i])))', legend: 'requests' }],
  },
  sandlot_prompts_unpriced_total: {
    kind: 'counter',
    labels: [],
    meaning: 'prompts for which no price was known',
    panels: [
      { title: 'Requests to the model', query: 'sum(once(rate({}[$i])))', legend: 'prompts without a price' },
    ],
    alerts: [
      {
        name: 'SandlotCostUnknown',
        when: 'sum(once(increase({}[1d]))) > 0',
        severity: 'info',
        summary: 'Prompts used a model whose price is not known, so their cost is unknown.',
        fix: 'Enter its price in Settings, Models.',
      },
    ],
  },
  sandlot_model_cost_dollars_total: {
    kind: 'counter',
    labels: [],
    meaning: 'cost of answers whose price was known',
    panels: [
      {
        title: 'Cost in the last day',
        note: 'Of answers whose price is known',
        unit: 'currencyUSD',
        query: 'sum(once(increase({}[1d])))',
        stat: {},
      },
    ],
  },
  sandlot_tool_calls_total: {
    kind: 'counter',
    labels: ['tool', 'outcome'],
    meaning: 'calls, also invalid and denied ones; the outcome is completed or the reason of a failure',
    panels: [
      { title: 'Tool calls', query: 'topk(10, sum by (tool) (once(rate({}[$i]))))' },
      {
        title: 'Calls that failed, by reason',
        query: 'sum by (outcome) (once(rate({outcome!="completed"}[$i])))',
      },
    ],
    alerts: [
      {
        name: 'SandlotSandboxesFail',
        when: 'sum(once(increase({outcome=~"sandbox_unavailable|sandbox_lost"}[10m]))) > 5',
        for: '5m',
        severity: 'critical',
        summary: 'Calls fail because their sandbox is not there.',
        fix: 'Run ./sandlot doctor; the engine may be down, or the disk full.',
      },
    ],
  },
  sandlot_tool_run_seconds: {
    kind: 'summary',
    labels: ['tool'],
    meaning: 'running time of calls, without waiting',
    panels: [
      {
        title: 'Running time of calls, p95',
        note: 'Without waiting, since the agent started',
        unit: 's',
        query: 'topk(10, max by (tool) ({quantile="0.95"}))',
      },
    ],
  },
  sandlot_tool_output_bytes_total: {
    kind: 'counter',
    labels: ['tool'],
    meaning: 'output of calls',
    panels: [
      { title: 'Output of calls', unit: 'Bps', query: 'topk(10, sum by (tool) (once(rate({}[$i]))))' },
    ],
  },
  sandlot_tool_output_size_bytes: {
    kind: 'histogram',
    labels: ['tool'],
    meaning: 'bytes of output of a call that had any',
    panels: [
      {
        title: 'Size of outputs, p95',
        unit: 'bytes',
        query: 'topk(10, histogram_quantile(0.95, sum by (le, tool) (once(rate(_bucket{}[$i])))))',
      },
    ],
  },
  sandlot_tool_wait_seconds_total: {
    kind: 'counter',
    labels: ['tool'],
    meaning: 'time that calls waited before they started: for an approval, other calls or a slot',
    panels: [
      { title: 'Calls waiting', unit: 'short', query: 'topk(10, sum by (tool) (once(rate({}[$i]))))' },
    ],
  },
  sandlot_tool_cached_total: {
    kind: 'counter',
    labels: ['tool'],
    meaning: 'calls that were answered from the cache',
  },
  sandlot_tool_truncated_ratio: {
    kind: 'gauge',
    labels: ['tool'],
    meaning: 'share of the calls whose output was truncated',
  },
  sandlot_tool_retries_total: {
    kind: 'counter',
    labels: ['tool'],
    meaning: 'tries of calls after the first',
  },
  gen_ai_execute_tool_duration_seconds: {
    kind: 'histogram',
    labels: ['gen_ai_operation_name', 'gen_ai_tool_name', 'error_type'],
    meaning:
      'OpenTelemetry’s `gen_ai.execute_tool.duration`: running time of calls; `error_type` is the reason of a failure',
  },
  gen_ai_client_token_usage: {
    kind: 'histogram',
    labels: ['gen_ai_operation_name', 'gen_ai_request_model', 'gen_ai_token_type'],
    meaning: 'OpenTelemetry’s `gen_ai.client.token.usage`: input and output tokens of each answer',
  },
  sandlot_prompt_turns: { kind: 'summary', labels: [], meaning: 'answers of the model in one prompt' },
  sandlot_continuation_seconds: {
    kind: 'summary',
    labels: [],
    meaning: 'from the last outcome of a turn to the next request: our own part alone',
    panels: [
      {
        title: 'Our own delays, p95',
        unit: 's',
        query: 'max({quantile="0.95"})',
        legend: 'outcome to next request',
      },
    ],
  },
  sandlot_call_start_seconds: {
    kind: 'summary',
    labels: [],
    meaning: 'from the last byte of an answer to the start of its first call; without calls that asked',
    panels: [
      {
        title: 'Our own delays, p95',
        unit: 's',
        query: 'max({quantile="0.95"})',
        legend: 'answer to first call',
      },
    ],
  },
  sandlot_event_loop_delay_seconds: {
    kind: 'gauge',
    labels: ['process', 'quantile'],
    meaning:
      'time the event loop of service or agent was blocked since the last scrape: quantiles 0.5, 0.99 and 1 (the longest); up to 10 ms more than shown',
    panels: [
      {
        title: 'Longest time that an event loop was held',
        unit: 's',
        query: 'max by (process) ({quantile="1"})',
      },
    ],
    alerts: [
      {
        name: 'SandlotEventLoopHeld',
        when: 'max by (process) ({quantile="1"}) > 1',
        for: '10m',
        severity: 'warning',
        summary: 'The {{ $labels.process }} was held for more than a second at every look of ten minutes.',
        fix: 'The machine may be short of processors; see what else runs on it.',
      },
    ],
  },
  sandlot_http_request_duration_seconds: {
    kind: 'histogram',
    labels: ['route', 'method', 'status'],
    meaning: 'time to answer an HTTP request',
    panels: [
      {
        title: 'HTTP answers, p95 by route',
        unit: 's',
        query: 'topk(10, histogram_quantile(0.95, sum by (le, route) (rate(_bucket{}[$i]))))',
      },
      { title: 'HTTP errors', query: 'sum by (status) (rate(_count{status=~"5.."}[$i]))' },
    ],
    alerts: [
      {
        name: 'SandlotHttpErrors',
        when: 'sum(rate(_count{status=~"5.."}[10m])) > 0.05 * sum(rate(_count{}[10m])) > 0',
        for: '10m',
        severity: 'warning',
        summary: 'More than a twentieth of the HTTP answers are errors of ours.',
        fix: 'The log of the service has each with its request id.',
      },
    ],
  },
  sandlot_sign_ins_total: {
    kind: 'counter',
    labels: ['result'],
    meaning: 'sign-ins by result: ok, refused or limited',
    panels: [{ title: 'Sign-ins', query: 'sum by (result) (rate({}[$i]))' }],
    alerts: [
      {
        name: 'SandlotSignInsRefused',
        when: 'sum(increase({result=~"refused|limited"}[15m])) > 100',
        severity: 'warning',
        summary: 'More than a hundred sign-ins were refused in 15 minutes; passwords may be tried.',
        fix: 'Settings, Audit shows from which addresses.',
      },
    ],
  },
  sandlot_notices_total: {
    kind: 'counter',
    labels: ['channel', 'result'],
    meaning:
      'notifications by push and mail: sent, failed, or dropped (too old, too many, or a browser whose push service just failed)',
    panels: [{ title: 'Notices', query: 'sum by (channel, result) (rate({}[$i]))' }],
    alerts: [
      {
        name: 'SandlotNoticesFail',
        when: 'sum by (channel) (increase({result="failed"}[1h])) > 10',
        severity: 'warning',
        summary: 'Notices by {{ $labels.channel }} fail.',
        fix: 'Send one to yourself in Settings, Notifications; it says what is wrong.',
      },
    ],
  },
  process_resident_memory_bytes: {
    kind: 'gauge',
    labels: [],
    meaning: 'memory of the service process, by prom-client',
    panels: [{ title: 'Memory of the service', unit: 'bytes', query: '{}', legend: 'resident' }],
  },
  sandlot_ws_sockets: {
    kind: 'gauge',
    labels: [],
    meaning: 'open chat sockets',
    panels: [{ title: 'Open pages', note: 'Chat sockets', unit: 'short', query: 'sum({})', stat: {} }],
  },
  sandlot_ws_frames_received_total: { kind: 'counter', labels: ['type'], meaning: 'chat frames received' },
  sandlot_ws_errors_sent_total: {
    kind: 'counter',
    labels: ['code'],
    meaning: 'frames of type ai_chat_error sent',
  },
  sandlot_ws_events_sent_total: {
    kind: 'counter',
    labels: ['live'],
    meaning: 'session events sent to sockets',
  },
  sandlot_ws_slow_readers_dropped_total: {
    kind: 'counter',
    labels: [],
    meaning: 'sockets closed because they read too slowly',
  },
  sandlot_ws_resumes_total: {
    kind: 'counter',
    labels: [],
    meaning: 'sessions resumed from a sequence number',
  },
} as const satisfies Record<string, Metric>

export type MetricName = keyof typeof METRICS
