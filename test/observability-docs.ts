/** The dashboard for Grafana, the alert rules and the list of docs/watching.md, from the table of metrics. */
import { METRICS } from '@sandlot/shared/node/metrics'
import { stringify } from 'yaml'
import { listOf, withList } from './configuration-docs.ts'

type Row = (typeof METRICS)[keyof typeof METRICS]
type Panel = Extract<Row, { panels: unknown }>['panels'][number]
type Alert = Extract<Row, { alerts: unknown }>['alerts'][number]

/** The row's query as Prometheus takes it. */
function expressionOf(name: string, query: string, job: string): string {
  return query
    .replaceAll(/(_bucket|_count|)\{(.*?)\}/g, (_, suffix: string, selector: string) => {
      return `${name}${suffix}{job="${job}"${selector === '' ? '' : `,${selector}`}}`
    })
    .replaceAll('once(', 'max without (instance) (')
    .replaceAll('$i', '$__rate_interval')
}

interface Drawn {
  panel: Panel
  targets: { legendFormat: string; expr: string }[]
}

/** In the order of the table. */
function panels(): Drawn[] {
  const drawn = new Map<string, Drawn>()
  for (const [name, row] of Object.entries(METRICS)) {
    const own: readonly Panel[] = 'panels' in row ? row.panels : []
    for (const panel of own) {
      const { panel: first, targets } = drawn.get(panel.title) ?? { panel, targets: [] }
      const target = { legendFormat: legendOf(panel), expr: expressionOf(name, panel.query, '$job') }
      drawn.set(panel.title, { panel: first, targets: [...targets, target] })
    }
  }
  return [...drawn.values()]
}

function legendOf(panel: Panel): string {
  if ('legend' in panel) return panel.legend
  const by = /\bby \(([^)]*)\)/.exec(panel.query)?.[1]?.split(', ') ?? []
  return by
    .filter((label) => label !== 'le')
    .map((label) => `{{${label}}}`)
    .join(' ')
}

const datasource = { type: 'prometheus', uid: '${datasource}' }
const WIDTH = 24

function panelOf({ panel, targets }: Drawn, id: number, gridPos: Record<'x' | 'y' | 'w' | 'h', number>) {
  const stat: { redBelow?: number } | undefined = 'stat' in panel ? panel.stat : undefined
  const steps = [
    { color: 'red', value: null },
    { color: 'green', value: stat?.redBelow },
  ]
  const thresholds = stat?.redBelow === undefined ? undefined : { mode: 'absolute', steps }
  return {
    id,
    type: stat ? 'stat' : 'timeseries',
    title: panel.title,
    description: 'note' in panel ? panel.note : '',
    datasource,
    gridPos,
    fieldConfig: {
      defaults: { unit: 'unit' in panel ? panel.unit : 'ops', min: 0, thresholds },
      overrides: [],
    },
    targets: targets.map((target, at) => ({ refId: String.fromCodePoint(65 + at), datasource, ...target })),
    options: stat
      ? { reduceOptions: { calcs: ['lastNotNull'] }, colorMode: 'value' }
      : {
          legend: { displayMode: 'list', placement: 'bottom' },
          tooltip: { mode: 'multi', sort: 'desc' },
        },
  }
}

/** `docker/observability/grafana-dashboard.json`: a row of numbers, then two time series in each. */
export function grafanaDashboard(): string {
  const all = panels()
  const stats = all.filter(({ panel }) => 'stat' in panel)
  const series = all.filter(({ panel }) => !('stat' in panel))
  const edge = (at: number): number => Math.round((at * WIDTH) / stats.length)
  const placed = [
    ...stats.map((each, at) =>
      panelOf(each, at + 1, { x: edge(at), y: 0, w: edge(at + 1) - edge(at), h: 4 }),
    ),
    ...series.map((each, at) => {
      const row = Math.floor(at / 2)
      return panelOf(each, stats.length + at + 1, { x: (at % 2) * 12, y: 4 + row * 8, w: 12, h: 8 })
    }),
  ]
  const job = {
    name: 'job',
    type: 'query',
    label: 'Job',
    datasource,
    query: 'label_values(sandlot_agent_connected, job)',
    refresh: 1,
  }
  const board = {
    title: 'Sandlot',
    uid: 'sandlot',
    tags: ['sandlot'],
    timezone: 'browser',
    schemaVersion: 39,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [{ name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Prometheus' }, job],
    },
    panels: placed,
  }
  return `${JSON.stringify(board, undefined, 2)}\n`
}

const SEVERITIES = ['critical', 'warning', 'info']

/** `docker/observability/alert-rules.yaml`: the most severe first. */
export function alertRules(): string {
  const rules = Object.entries(METRICS).flatMap(([metric, row]) => {
    const own: readonly Alert[] = 'alerts' in row ? row.alerts : []
    return own.map(({ name, when, severity, summary, fix, ...rest }) => ({
      alert: name,
      expr: expressionOf(metric, when, 'sandlot'),
      ...rest,
      labels: { severity },
      annotations: { summary, fix },
    }))
  })
  const bySeverity = SEVERITIES.flatMap((severity) =>
    rules.filter(({ labels }) => labels.severity === severity),
  )
  return [
    '# Alert rules of Prometheus for one Sandlot, whose job is called sandlot (docs/watching.md).\n',
    '# Written by test/write-docs.ts.\n',
    stringify({ groups: [{ name: 'sandlot', rules: bySeverity }] }, { lineWidth: 0 }),
  ].join('')
}

/** `docs/watching.md` with its list of our own metrics rewritten. */
export function withMetrics(text: string): string {
  const own = Object.entries(METRICS).filter(([name]) => name.startsWith('sandlot_'))
  const rows = own.map(([name, { labels, meaning }]): [string, string] => [
    `${name}${labels.length === 0 ? '' : `{${labels.join(',')}}`}`,
    meaning,
  ])
  return withList(text, 'metrics', listOf(rows))
}
