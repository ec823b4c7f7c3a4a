/** Everybody's usage, for administrators: by person, team, model and tool. */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import {
  type AdminUsageView,
  type CountedTool,
  USAGE_GROUPS,
  type UsageGroup,
} from '@sandlot/shared/admin/usage'
import { Download } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { cn } from '../../lib/cn.ts'
import { formatDuration } from '../../lib/format.ts'
import { call, urlOf } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Part } from '../part.tsx'
import { ByDay } from './by-day.tsx'
import { type Days, DaysChoice, daysOf } from './days.tsx'
import { TOOL_MEASURES, USAGE_MEASURES } from './measures.ts'
import { SumTable } from './sum-table.tsx'
import { Totals } from './usage.tsx'

const GROUP_WORDS: Record<UsageGroup, string> = {
  person: 'Person',
  team: 'Team',
  model: 'Model',
  tool: 'Tool',
}

export function Costs() {
  const [days, setDays] = useState(() => daysOf('30', Date.now()))
  const [by, setBy] = useState<UsageGroup>('person')
  const query = { ...days, by }
  const { data: view, problem } = useResource(
    JSON.stringify(query),
    (signal) => call('getUsageOfAll', { query, signal }),
    { keep: true },
  )
  const title = `By ${GROUP_WORDS[by].toLowerCase()}`
  return (
    <>
      <div className="flex flex-wrap items-end gap-3">
        <DaysChoice days={days} onChange={setDays} />
        <a
          href={urlOf('getUsageOfAll', { query: { ...query, format: 'csv' } })}
          download
          className="inline-flex h-10 items-center gap-2 rounded-lg border border-line-strong bg-raised px-3.5 text-sm font-medium shadow-1 hover:bg-hover pointer-coarse:h-11"
        >
          <Download className="size-4" aria-hidden /> Download CSV
        </a>
      </div>
      <GroupChoice by={by} onChoose={setBy} />
      {problem !== null && <Alert>{problem}</Alert>}
      {view?.by === by &&
        (view.by === 'tool' ? (
          <ToolCosts days={days} title={title} view={view} />
        ) : (
          <>
            <Totals total={view.total} />
            <Part title="By day" text="Days are UTC.">
              <ByDay key={view.by} days={days} rows={view.days} measures={USAGE_MEASURES} />
            </Part>
            <Part
              title={title}
              text={
                view.by === 'team'
                  ? 'By people’s teams at the time. People in two teams count for both, so the sum can exceed the total.'
                  : undefined
              }
            >
              <SumTable
                label={title}
                head={GROUP_WORDS[view.by]}
                rows={view.rows}
                nameOf={nameOf}
                measures={USAGE_MEASURES}
              />
            </Part>
          </>
        ))}
    </>
  )
}

function GroupChoice(props: { by: UsageGroup; onChoose: (group: UsageGroup) => void }) {
  const { by } = props
  return (
    <fieldset className="-mt-6 flex flex-wrap gap-1">
      <legend className="sr-only">Split by</legend>
      {USAGE_GROUPS.map((group) => (
        <label
          key={group}
          className={cn(
            'flex h-9 cursor-pointer items-center rounded-lg px-3 text-sm has-focus-visible:outline-2 has-focus-visible:outline-accent pointer-coarse:h-11',
            group === by ? 'bg-active font-medium text-ink' : 'text-muted hover:bg-hover hover:text-ink',
          )}
        >
          <input
            type="radio"
            name="split"
            className="sr-only"
            checked={group === by}
            onChange={() => props.onChoose(group)}
          />
          {GROUP_WORDS[group]}
        </label>
      ))}
    </fieldset>
  )
}

function ToolCosts(props: { days: Days; title: string; view: Extract<AdminUsageView, { by: 'tool' }> }) {
  const { days, title, view } = props
  return (
    <>
      <ToolTotals total={view.total} />
      <Part title="By day" text="Days are UTC.">
        <ByDay key={view.by} days={days} rows={view.days} measures={TOOL_MEASURES} />
      </Part>
      <Part title={title} text="Completed calls, including refused ones.">
        <SumTable
          label={title}
          head={GROUP_WORDS[view.by]}
          rows={view.rows}
          nameOf={({ name }) => <span className="font-mono text-xs">{name}</span>}
          measures={TOOL_MEASURES}
        />
      </Part>
    </>
  )
}

function nameOf({ name, email }: { name: string; email?: string | undefined }): ReactNode {
  return (
    <>
      {name}
      {email !== undefined && <span className="block text-xs text-muted">{email}</span>}
    </>
  )
}

function ToolTotals(props: { total: CountedTool }) {
  const { calls, failed, runMs, outputBytes } = props.total
  const all = [
    ['Calls', calls.toLocaleString('en')],
    ['Failed', failed.toLocaleString('en')],
    ['Run time', formatDuration(runMs)],
    ['Output', formatBytes(outputBytes)],
  ] as const
  return (
    <dl aria-label="Total" className="grid grid-cols-2 gap-3 lg:grid-cols-4">
      {all.map(([name, value]) => (
        <div key={name} className="rounded-lg border border-line px-3 py-2.5">
          <dt className="text-xs text-muted">{name}</dt>
          <dd className="mt-0.5 text-lg font-semibold tabular-nums">{value}</dd>
        </div>
      ))}
    </dl>
  )
}
