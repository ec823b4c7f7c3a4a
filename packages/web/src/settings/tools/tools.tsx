/** Statistics of the agent's tools: a table that can be sorted. */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import type { ToolLine } from '@sandlot/shared/admin/tool-stats'
import { ArrowDown, ArrowUp } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import { useResource } from '../../state/use-resource.ts'
import { cn } from '../../lib/cn.ts'
import { formatCount, formatDuration } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'

interface Column {
  key: 'id' | 'calls' | 'successRate' | 'p50Ms' | 'p95Ms' | 'truncationRate' | 'outputBytes'
  title: string
  /** The meaning of the short title. */
  about?: string
  /** Only where there is room. */
  wide?: true
  show: (tool: ToolLine) => ReactNode
}

/** A tool that was never called has no rates and times. */
const orNone = (tool: ToolLine, text: string) =>
  tool.calls === 0 ? <span className="text-faint">–</span> : text

const COLUMNS: readonly Column[] = [
  { key: 'id', title: 'Tool', show: (tool) => <Name tool={tool} /> },
  { key: 'calls', title: 'Calls', show: ({ calls }) => calls.toLocaleString('en') },
  {
    key: 'successRate',
    title: 'Success',
    show: (tool) => orNone(tool, percent(tool.successRate)),
  },
  {
    key: 'p50Ms',
    title: 'p50',
    about: 'Median duration',
    wide: true,
    show: (tool) => orNone(tool, formatDuration(tool.p50Ms)),
  },
  {
    key: 'p95Ms',
    title: 'p95',
    about: '95th percentile',
    show: (tool) => orNone(tool, formatDuration(tool.p95Ms)),
  },
  {
    key: 'truncationRate',
    title: 'Cut',
    about: 'Calls whose output was too long for the model',
    wide: true,
    show: (tool) => orNone(tool, percent(tool.truncationRate)),
  },
  {
    key: 'outputBytes',
    title: 'Output',
    wide: true,
    show: (tool) => orNone(tool, formatBytes(tool.outputBytes)),
  },
]

export function ToolsSection() {
  const [by, setBy] = useState<{ key: Column['key']; up: boolean }>({ key: 'calls', up: false })
  const { data: view, problem } = useResource('tools', (signal) => call('listTools', { signal }))
  if (view === null) return problem === null ? null : <Alert>{problem}</Alert>
  const sorted = view.tools.toSorted((a, b) => (by.up ? 1 : -1) * compare(a, b, by.key))
  const calls = view.tools.reduce((sum, tool) => sum + tool.calls, 0)
  return (
    <div className="flex flex-col gap-4">
      <p className="text-sm text-muted">
        {formatCount(calls, 'call')} since the agent started, {startWords(view.since)}. Resets on restart;
        daily and monthly figures are under{' '}
        <Link
          href="/settings/costs"
          className="inline-flex items-center text-accent underline underline-offset-2 pointer-coarse:h-11"
        >
          Usage and costs
        </Link>
        .
      </p>
      <table aria-label="Tools" className="w-full text-left text-sm">
        <thead>
          <tr className="border-b border-line text-xs text-muted">
            {COLUMNS.map((column) => (
              <Heading
                key={column.key}
                column={column}
                up={by.key === column.key ? by.up : undefined}
                onSort={() =>
                  setBy({ key: column.key, up: by.key === column.key ? !by.up : column.key === 'id' })
                }
              />
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {sorted.map((tool) => (
            <ToolRow key={tool.id} tool={tool} />
          ))}
        </tbody>
      </table>
      <SwitchedOffWhere />
    </div>
  )
}

function ToolRow({ tool }: { tool: ToolLine }) {
  return (
    <tr>
      {COLUMNS.map(({ key, wide, show }) =>
        key === 'id' ? (
          <th key={key} scope="row" className="py-2 pr-3 font-normal [overflow-wrap:anywhere]">
            {show(tool)}
          </th>
        ) : (
          <td
            key={key}
            className={cn('py-2 pl-2 text-right whitespace-nowrap tabular-nums', wide && 'max-sm:hidden')}
          >
            {show(tool)}
          </td>
        ),
      )}
    </tr>
  )
}

function SwitchedOffWhere() {
  return (
    <p className="text-sm text-muted">
      To disable built-in tools for everyone, use the section <code className="text-xs">tools</code> of the
      configuration file and restart. For a team or person, use{' '}
      <Link
        href="/settings/teams"
        className="inline-flex items-center text-accent underline underline-offset-2 pointer-coarse:h-11"
      >
        Teams
      </Link>{' '}
      and{' '}
      <Link
        href="/settings/people"
        className="inline-flex items-center text-accent underline underline-offset-2 pointer-coarse:h-11"
      >
        People
      </Link>
      .
    </p>
  )
}

function Heading(props: { column: Column; up: boolean | undefined; onSort: () => void }) {
  const { column, up } = props
  const Arrow = up === true ? ArrowUp : ArrowDown
  return (
    <th
      scope="col"
      aria-sort={up === undefined ? undefined : up ? 'ascending' : 'descending'}
      className={cn(
        'py-1 font-medium',
        column.key !== 'id' && 'pl-2 text-right',
        column.wide && 'max-sm:hidden',
      )}
    >
      <button
        type="button"
        title={column.about}
        onClick={props.onSort}
        className={cn(
          'inline-flex min-h-6 cursor-pointer items-center gap-1 rounded hover:text-ink pointer-coarse:min-h-11',
          up !== undefined && 'text-ink',
        )}
      >
        {column.title}
        {up !== undefined && <Arrow className="size-3" aria-hidden />}
      </button>
    </th>
  )
}

function Name({ tool }: { tool: ToolLine }) {
  const builtIn = tool.source === 'built-in'
  const name = builtIn ? tool.id : tool.id.slice(tool.source.length + 2)
  return (
    <>
      <span className={cn('font-mono text-xs', tool.offered === 'off' && 'text-muted')}>{name}</span>
      {tool.offered === 'off' && (
        <span className="ml-2 rounded-full border border-line px-1.5 py-px text-2xs text-muted">off</span>
      )}
      {!builtIn && <span className="block text-xs text-muted">{tool.source}</span>}
    </>
  )
}

function percent(share: number): string {
  const hundredths = share * 100
  return `${hundredths > 0 && hundredths < 100 ? hundredths.toFixed(1) : hundredths.toFixed(0)} %`
}

/** By name where the figures are equal. */
function compare(a: ToolLine, b: ToolLine, key: Column['key']): number {
  if (key === 'id') return a.id.localeCompare(b.id)
  return a[key] - b[key] || b.id.localeCompare(a.id)
}

function startWords(at: number): string {
  return new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
}
