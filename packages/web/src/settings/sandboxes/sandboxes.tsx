/** Everybody's sandboxes: what they are doing, what they use, and to stop or reset one. */
import type { SandboxUse } from '@sandlot/shared/workspace/sandbox'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { MOST_MEASURED, type SandboxUses, type SandboxesView } from '@sandlot/shared/admin/sandboxes'
import { Power, RotateCcw } from 'lucide-react'
import { useEffect, useMemo, useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { cn } from '../../lib/cn.ts'
import { formatCount, formatDate } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { STATE_WORDS } from '../../lib/sandbox-text.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { Part } from '../part.tsx'
import { useAttempt } from '../../lib/use-attempt.ts'

type Row = SandboxesView['sandboxes'][number]

interface Asked {
  act: keyof typeof ACTS
  row: Row
}

/** Rows that are drawn, and measured, before one asks for more. */
const FIRST_ROWS = 25
const MEASURE_AFTER_MS = 200

const ACTS = {
  stop: {
    title: (name: string) => `Stop the sandbox of ${name}?`,
    about:
      'Ends every command and terminal in it and notifies waiting chats. Files are kept; the next command starts it again.',
    confirm: 'Stop',
    done: (name: string) => `Sandbox of ${name} stopped.`,
  },
  reset: {
    title: (name: string) => `Reset the sandbox of ${name}?`,
    about:
      'Ends every process in it, notifies waiting chats and empties /tmp. Workspace files are kept. If the volume is missing, the workspace starts empty.',
    confirm: 'Reset',
    done: (name: string) => `Sandbox of ${name} reset.`,
  },
} as const

export function SandboxesSection() {
  const [wanted, setWanted] = useState('')
  const [rows, setRows] = useState(FIRST_ROWS)
  const [asked, setAsked] = useState<Asked | null>(null)
  const {
    data: view,
    problem,
    busy,
    change,
  } = useResource('sandboxes', async (signal) => {
    const now = await call('listSandboxes', { signal })
    forget()
    return now
  })
  const found = useMemo(() => (view === null ? [] : foundIn(view, wanted)), [view, wanted])
  const shown = found.slice(0, rows)
  const { uses, problem: unmeasured, forget } = useUses(found, rows)
  if (view === null)
    return problem === null ? (
      <p role="status" className="flex items-center gap-2 text-sm text-muted">
        <Spinner /> Loading…
      </p>
    ) : (
      <Alert>{problem}</Alert>
    )
  const act = async ({ act: what, row }: Asked) => {
    setAsked(null)
    await change(async () => {
      const { userId } = row
      await call(what === 'stop' ? 'stopUserSandbox' : 'resetUserSandbox', { params: { userId } })
      showToast(ACTS[what].done(nameOf(row)))
    })
  }
  return (
    <div className="flex flex-col gap-10">
      <div className="flex flex-col gap-4">
        {problem !== null && <Alert>{problem}</Alert>}
        {unmeasured !== null && <Alert>{unmeasured}</Alert>}
        <Facts view={view} />
        <Find
          wanted={wanted}
          busy={busy}
          onWanted={setWanted}
          onRefresh={() => void change(() => Promise.resolve())}
        />
        {found.length === 0 ? (
          <p className="text-sm text-muted">
            {wanted === '' ? 'No sandboxes yet. A person’s first command creates theirs.' : 'No matches.'}
          </p>
        ) : (
          <SandboxList rows={shown} uses={uses} busy={busy} onAsk={setAsked} />
        )}
        {shown.length < found.length && (
          <Button size="sm" className="self-start" onClick={() => setRows(rows + FIRST_ROWS)}>
            Show more of {found.length.toLocaleString('en')}
          </Button>
        )}
      </div>
      {view.ownerless.length > 0 && <Ownerless names={view.ownerless} />}
      {asked !== null && (
        <ConfirmAct asked={asked} onCancel={() => setAsked(null)} onConfirm={() => void act(asked)} />
      )}
    </div>
  )
}

/** Current use of these sandboxes, of those that are awake. */
async function fetchUses(userIds: readonly string[]): Promise<SandboxUses['uses']> {
  let uses: SandboxUses['uses'] = {}
  for (let from = 0; from < userIds.length; from += MOST_MEASURED) {
    const user = userIds.slice(from, from + MOST_MEASURED)
    uses = { ...uses, ...(await call('measureSandboxes', { query: { user } })).uses }
  }
  return uses
}

/** Use of the running sandboxes among the first `rows`. `forget`: measure all of them again. */
function useUses(found: readonly Row[], rows: number) {
  const [uses, setUses] = useState<Record<string, SandboxUse>>({})
  const measuring = useAttempt()
  useEffect(() => {
    // Only what one sees is measured, and not at every letter.
    const awake = found
      .slice(0, rows)
      .filter(({ state, userId }) => state === 'ready' && uses[userId] === undefined)
    if (awake.length === 0) return undefined
    const measure = async () => {
      const now = await fetchUses(awake.map(({ userId }) => userId))
      setUses((before) => ({ ...before, ...now }))
    }
    const timer = setTimeout(() => void measuring.attempt(measure), MEASURE_AFTER_MS)
    return () => clearTimeout(timer)
    // Not the uses: one that cannot be measured would be asked for again and again.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [found, rows])
  return { uses, problem: measuring.problem, forget: () => setUses({}) }
}

function Facts({ view }: { view: SandboxesView }) {
  const { limits, image, warm } = view
  const awake = view.sandboxes.filter(({ state }) => state === 'ready').length
  return (
    <dl className="grid gap-x-6 gap-y-1 text-sm sm:grid-cols-[auto_1fr]">
      <dt className="text-muted">Each may use</dt>
      <dd>
        {formatCount(limits.cpus, 'processor')}, {formatBytes(limits.memory)} of memory,{' '}
        {formatCount(limits.processes, 'process', 'processes')}, {formatBytes(limits.disk)} of disk
      </dd>
      <dt className="text-muted">Image</dt>
      <dd className="font-mono text-xs leading-5 [overflow-wrap:anywhere]">{image}</dd>
      <dt className="text-muted">Now</dt>
      <dd>
        {formatCount(view.sandboxes.length, 'sandbox', 'sandboxes')}, {awake.toLocaleString('en')} running,{' '}
        {warm.toLocaleString('en')} more ready for new people
      </dd>
    </dl>
  )
}

function Ownerless({ names }: { names: readonly string[] }) {
  return (
    <Part
      title="Orphaned workspaces"
      text="Their owners are unknown, for example after a lost database. ./sandlot sandbox prune removes them and their files."
    >
      <ul aria-label="Orphaned workspaces" className="divide-y divide-line rounded-lg border border-line">
        {names.map((name) => (
          <li key={name} className="px-3 py-2 font-mono text-xs [overflow-wrap:anywhere]">
            {name}
          </li>
        ))}
      </ul>
    </Part>
  )
}

function ConfirmAct(props: { asked: Asked; onCancel: () => void; onConfirm: () => void }) {
  const { asked } = props
  return (
    <ConfirmDialog
      open
      title={ACTS[asked.act].title(nameOf(asked.row))}
      confirm={ACTS[asked.act].confirm}
      onCancel={props.onCancel}
      onConfirm={props.onConfirm}
    >
      {ACTS[asked.act].about}
    </ConfirmDialog>
  )
}

function Find(props: {
  wanted: string
  busy: boolean
  onWanted: (wanted: string) => void
  onRefresh: () => void
}) {
  const { wanted, busy } = props
  return (
    <div className="flex gap-2">
      <SearchField
        label="Find a sandbox by person"
        placeholder="Find a person’s sandbox"
        value={wanted}
        onChange={props.onWanted}
      />
      <Button className="h-10 pointer-coarse:h-11" disabled={busy} onClick={props.onRefresh}>
        {busy && <Spinner />} Refresh
      </Button>
    </div>
  )
}

function SandboxList(props: {
  rows: readonly Row[]
  uses: Readonly<Record<string, SandboxUse>>
  busy: boolean
  onAsk: (asked: Asked) => void
}) {
  return (
    <ul aria-label="Sandboxes" className="divide-y divide-line rounded-lg border border-line">
      {props.rows.map((row) => (
        <SandboxRow
          key={row.userId}
          row={row}
          use={props.uses[row.userId]}
          busy={props.busy}
          onAct={(what) => props.onAsk({ act: what, row })}
        />
      ))}
    </ul>
  )
}

function SandboxRow(props: {
  row: Row
  use: SandboxUse | undefined
  busy: boolean
  onAct: (act: keyof typeof ACTS) => void
}) {
  const { row, use } = props
  const name = nameOf(row)
  const idle = row.state === 'none' || row.state === 'stopped'
  return (
    <li className="flex items-center gap-3 py-2 pr-1.5 pl-3 text-sm">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-baseline gap-x-2">
          <span className="font-medium [overflow-wrap:anywhere]">{name}</span>
          <span className={cn('text-xs', row.state === 'ready' ? 'font-medium text-well' : 'text-muted')}>
            {STATE_WORDS[row.state].title}
          </span>
        </p>
        <p className="text-xs text-muted [overflow-wrap:anywhere]">
          {[row.email, row.since === undefined ? undefined : `since ${formatDate(row.since)}`]
            .filter((text) => text !== undefined)
            .join(' · ')}
        </p>
        {use !== undefined && <p className="text-xs text-muted">{useWords(use)}</p>}
      </div>
      <IconButton
        label={`Stop the sandbox of ${name}`}
        disabled={props.busy || idle}
        onClick={() => props.onAct('stop')}
      >
        <Power aria-hidden />
      </IconButton>
      <IconButton
        label={`Reset the sandbox of ${name}`}
        disabled={props.busy || idle}
        onClick={() => props.onAct('reset')}
      >
        <RotateCcw aria-hidden />
      </IconButton>
    </li>
  )
}

function useWords({ memory, processes, disk, commands }: SandboxUse): string {
  const of = ({ used, limit }: { used: number; limit?: number | undefined }) =>
    limit === undefined ? formatBytes(used) : `${formatBytes(used)} of ${formatBytes(limit)}`
  return [
    formatCount(commands, 'command'),
    formatCount(processes.used, 'process', 'processes'),
    `memory ${of(memory)}`,
    `disk ${of(disk)}`,
  ].join(' · ')
}

function nameOf({ name, userId }: Row): string {
  return name ?? `${userId} (account removed)`
}

function foundIn({ sandboxes }: SandboxesView, wanted: string): Row[] {
  const text = wanted.trim().toLowerCase()
  return sandboxes.filter((row) => `${nameOf(row)} ${row.email ?? ''}`.toLowerCase().includes(text))
}
