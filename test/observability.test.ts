/** The queries of the dashboard and the alert rules, against what `/metrics` gives, and as Prometheus takes them. */
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { METRICS } from '@sandlot/shared/node/metrics'
import { expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { AgentMetrics } from '../packages/ai-agent/src/metrics/agent-metrics.ts'
import { createToolMetrics } from '../packages/ai-agent/src/metrics/tool-metrics.ts'
import { makeMetrics } from '../packages/service/src/metrics.ts'
import { ROOT, read } from './source-files.ts'

interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[]
}

interface AlertRules {
  groups: { rules: { alert: string; expr: string; annotations: { summary: string; fix: string } }[] }[]
}

const board = JSON.parse(read('docker/observability/grafana-dashboard.json').text) as Dashboard
const alerts = (parse(read('docker/observability/alert-rules.yaml').text) as AlertRules).groups.flatMap(
  ({ rules }) => rules,
)
const QUERIES = [
  ...board.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
]

type Labels = Record<string, string>

/** Text and series, by name, that both processes report after one event of each kind. */
async function everything(): Promise<{ text: string; series: Map<string, Labels[]> }> {
  const service = makeMetrics()
  service.httpRequest('/api/me', 'GET', 200, 0.01)
  service.httpRequest('/api/me', 'GET', 503, 0.01)
  for (const result of ['ok', 'refused', 'limited'] as const) service.signIn(result)
  for (const result of ['sent', 'failed', 'dropped'] as const) service.notification('push', result)
  const delays = { p50: 1, p99: 2, max: 3 }
  service.loopDelays({ service: delays, agent: delays })
  const tools = createToolMetrics()
  const call = { tool: 'glob', waitMs: 0, runMs: 1, bytes: 5, truncated: false, cached: false, retries: 0 }
  for (const outcome of ['completed', 'timeout', 'sandbox_unavailable', 'sandbox_lost'] as const)
    tools.record({ ...call, outcome })
  const metrics = new AgentMetrics()
  metrics.usage('gpt-5', { input: 2, output: 1, cached: 1 })
  const agent = await metrics.scrape(tools)
  const text = `${await service.text()}\n${agent.text}`
  const series = new Map<string, Labels[]>()
  for (const line of text.split('\n')) {
    const found = /^(?<name>[a-zA-Z_:][\w:]*)(?:\{(?<labels>[^}]*)\})? /.exec(line)?.groups
    if (found === undefined) continue
    const labels = [...(found['labels'] ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(
      ([, key = '', value = '']) => [key, value] as const,
    )
    series.set(found['name'] ?? '', [...(series.get(found['name'] ?? '') ?? []), Object.fromEntries(labels)])
  }
  // Added by Prometheus itself.
  series.set('up', [{}])
  for (const all of series.values()) for (const labels of all) Object.assign(labels, { job: 'sandlot' })
  return { text, series }
}

/** Sentences about what a query asks for and there is not. */
function problemsOf(query: string, series: ReadonlyMap<string, readonly Labels[]>): string[] {
  const problems: string[] = []
  const used = new Set<string>()
  for (const [, name = '', selector = ''] of query.matchAll(
    /\b((?:sandlot|process|nodejs)_\w+|up)\b(?:\{([^}]*)\})?/g,
  )) {
    if (/\bby \([^)]*$/.test(query.slice(0, query.indexOf(name)))) continue
    let fitting = series.get(name) ?? []
    if (fitting.length === 0) problems.push(`there is no ${name}`)
    for (const labels of fitting) for (const label of Object.keys(labels)) used.add(label)
    for (const [, label = '', how = '', wanted = ''] of selector.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)) {
      const value = wanted === '$job' ? 'sandlot' : wanted
      const matches = (text: string): boolean =>
        how.endsWith('~') ? new RegExp(`^(?:${value})$`).test(text) : text === value
      fitting = fitting.filter((labels) => {
        const own = labels[label]
        return own !== undefined && (how.startsWith('!') ? !matches(own) : matches(own))
      })
      if (fitting.length === 0) problems.push(`no ${name} has ${label}${how}"${wanted}"`)
    }
  }
  if (used.size === 0) problems.push('it asks for nothing of ours')
  for (const [, list = ''] of query.matchAll(/\bby \(([^)]*)\)/g))
    for (const label of list.split(',').map((one) => one.trim()))
      if (!used.has(label)) problems.push(`nothing in it has the label ${label}`)
  return problems
}

test('every query of the dashboard and of the alert rules finds what it asks for', async () => {
  const { series } = await everything()
  const problems = QUERIES.flatMap(([title, query]) =>
    problemsOf(query, series).map((problem) => `${title}: ${problem}`),
  )
  expect(QUERIES.length).toBeGreaterThan(30)
  expect(problems).toEqual([])
})

test('the table has every metric of ours that both processes report, with its kind', async () => {
  const { text } = await everything()
  const reported = [...text.matchAll(/^# TYPE (sandlot_\w+) (\w+)$/gm)].map(([, name, kind]) => [name, kind])
  const described = Object.entries(METRICS).map(([name, { kind }]) => [name, kind])
  expect(Object.fromEntries(reported)).toEqual(
    Object.fromEntries(described.filter(([name]) => name?.startsWith('sandlot_'))),
  )
})

test('one that asks for what there is not is found', async () => {
  const { series } = await everything()
  expect(problemsOf('sum(rate(sandlot_nothing_total[5m]))', series)).toEqual([
    'there is no sandlot_nothing_total',
    'it asks for nothing of ours',
  ])
  expect(problemsOf('sum by (person) (sandlot_tool_calls_total{outcome="done"})', series)).toEqual([
    'no sandlot_tool_calls_total has outcome="done"',
    'nothing in it has the label person',
  ])
})

// Debian's package `prometheus` has it.
const hasPromtool = spawnSync('promtool', ['--version']).status === 0

test.skipIf(!hasPromtool)(
  'Prometheus takes every query, and counts once what several services say of one agent',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandlot-rules-'))
    try {
      copyFileSync(join(ROOT, 'docker/observability/alert-rules.yaml'), join(folder, 'alerts.yaml'))
      const rules = QUERIES.map(([, query], number) => ({
        record: `query:${number}`,
        expr: query.replaceAll('$job', 'sandlot').replaceAll('$__rate_interval', '5m'),
      }))
      writeFileSync(join(folder, 'queries.yaml'), stringify({ groups: [{ name: 'queries', rules }] }))
      // Four in ten minutes, reported by two services.
      const input_series = ['a', 'b'].map((instance) => ({
        series: `sandlot_tool_calls_total{job="sandlot",instance="${instance}",replica="r",outcome="sandbox_lost"}`,
        values: '0+0.4x60',
      }))
      const alert_rule_test = [{ eval_time: '30m', alertname: 'SandlotSandboxesFail', exp_alerts: [] }]
      const tests = [{ interval: '1m', input_series, alert_rule_test }]
      writeFileSync(
        join(folder, 'tests.yaml'),
        stringify({ rule_files: ['alerts.yaml', 'queries.yaml'], tests }),
      )
      const run = (...args: string[]): string =>
        execFileSync('promtool', args, { cwd: folder, encoding: 'utf8' })
      expect(run('check', 'rules', 'alerts.yaml', 'queries.yaml')).not.toContain('FAILED')
      expect(run('test', 'rules', 'tests.yaml')).toContain('SUCCESS')
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
)
