/** Backups, for administrators: how they went, when the next one is due, and the way back. */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { type BackupStatus, type BackupsView, type BackupTry } from '@sandlot/shared/admin/backup-status'
import { CircleAlert, CircleCheck, RotateCcw } from 'lucide-react'
import type { ReactNode } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { formatCount, formatMoment } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert, Hint } from '../../ui/alert.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Part } from '../part.tsx'

/** A schedule that is so late is not kept. */
const LATE_MS = 2 * 3_600_000
const MOST_SHOWN = 30

export function BackupsSection() {
  const { data: view, problem } = useResource('backups', (signal) => call('getBackups', { signal }))
  if (view === null) return problem === null ? <Spinner /> : <Alert>{problem}</Alert>
  const { status, nextAt } = view
  const rows = rowsOf(status)
  const newest = rows.find(({ kind }) => kind === 'made')
  return (
    <>
      <Part title="State">
        <Facts status={status} nextAt={nextAt} />
        {status?.failed !== undefined && <Alert>{`The last backup failed. ${status.failed.message}`}</Alert>}
        {status?.last === undefined && (
          <Hint>
            No backups yet. Put a passphrase in a file and run a backup, or schedule one with
            SANDLOT_BACKUP_PASSPHRASE_FILE and SANDLOT_BACKUP_EVERY_HOURS=24 in .env. See docs/backup.md.
          </Hint>
        )}
        <Command text={backupCommand(status)} what="the command that makes a backup now" />
      </Part>
      {rows.length > 0 && (
        <Part title="History" text="Newest first. Every backup was verified.">
          <ul aria-label="Backups made so far" className="divide-y divide-line rounded-lg border border-line">
            {rows.slice(0, MOST_SHOWN).map((row) => (
              <Row key={`${row.kind} ${row.at}`} row={row} />
            ))}
          </ul>
        </Part>
      )}
      <Part
        title="Restore"
        text="On the server, into an empty data folder, with the same or a later version and the passphrase. Pending messages and approvals are restored too."
      >
        <Command
          text={restoreCommand(status, newest?.file ?? '/path/to/sandlot-….tar')}
          what="the command that restores the newest one"
        />
        <p className="text-sm text-muted">
          Keep copies on another machine, and the passphrase separate from them. Without it, workspaces and
          stored secrets can’t be recovered.
        </p>
      </Part>
    </>
  )
}

function Facts({ status, nextAt }: BackupsView) {
  const { last, settings } = status ?? {}
  return (
    <dl className="divide-y divide-line rounded-lg border border-line text-sm">
      <Fact name="Last backup">
        {last === undefined ? 'None' : `${formatMoment(Date.parse(last.at))}, ${formatBytes(last.bytes)}`}
      </Fact>
      <Fact name="Next backup">{nextWords(status, nextAt)}</Fact>
      {settings !== undefined && (
        <>
          <Fact name="Where">
            <code className="text-xs">{settings.folder}</code>
            {settings.inContainer &&
              ', in the container: docker/backups, or SANDLOT_BACKUP_DIR of docker/.env, on the host'}
          </Fact>
          <Fact name="Kept">
            {settings.everyMs === null
              ? 'All (no schedule)'
              : `The newest ${settings.keep} (SANDLOT_BACKUP_KEEP)`}
          </Fact>
        </>
      )}
    </dl>
  )
}

function Fact(props: { name: string; children: ReactNode }) {
  return (
    <div className="flex flex-wrap gap-x-3 px-3 py-2">
      <dt className="w-full shrink-0 text-muted sm:w-40">{props.name}</dt>
      <dd className="min-w-0 flex-1 [overflow-wrap:anywhere]">{props.children}</dd>
    </div>
  )
}

function nextWords(status: BackupStatus | null, nextAt: number | null): string {
  if (nextAt === null)
    return status?.settings === undefined
      ? 'Unknown: no backup process has run yet'
      : 'Not scheduled: SANDLOT_BACKUP_EVERY_HOURS isn’t set'
  if (Date.now() - nextAt > LATE_MS)
    return `Overdue since ${formatMoment(nextAt)}: the backup process isn’t running (see log/backup.log, or docker compose logs backup)`
  return nextAt <= Date.now() ? 'Now' : formatMoment(nextAt)
}

// ── What was tried

type Shown = { at: string } & (
  | { kind: 'made'; file: string; bytes: number; words: string; isRemoved: boolean }
  | { kind: 'failed' | 'restored'; words: string; file?: undefined }
)

/** Each try, and what is in the folder from before tries were kept. */
function rowsOf(status: BackupStatus | null): Shown[] {
  const { tries = [], files = [], settings } = status ?? {}
  const there = new Set(files.map(({ file }) => file))
  const isOfFolder = (file: string) => settings !== undefined && file.startsWith(`${settings.folder}/`)
  const ofTries = tries.map((one): Shown => {
    if (one.did !== 'backup')
      return { at: one.at, kind: one.did === 'fail' ? 'failed' : 'restored', words: failWords(one) }
    const { at, file, bytes, workspaces } = one
    const words = `${formatCount(workspaces, 'workspace')}, ${byWords(one)}`
    return { at, kind: 'made', file, bytes, words, isRemoved: isOfFolder(file) && !there.has(file) }
  })
  const known = new Set(ofTries.map(({ file }) => file))
  const others = files
    .filter(({ file }) => !known.has(file))
    .map((one): Shown => ({ ...one, kind: 'made', words: 'Found in the folder', isRemoved: false }))
  return [...ofTries, ...others].toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at))
}

function byWords({ by }: BackupTry): string {
  return by === 'schedule' ? 'scheduled' : 'manual'
}

function failWords(one: Exclude<BackupTry, { did: 'backup' }>): string {
  return one.did === 'fail'
    ? `${one.message} (${byWords(one)})`
    : `Of the backup of ${formatMoment(Date.parse(one.of))}, with ${formatCount(one.workspaces, 'workspace')}`
}

const LOOK = {
  made: { icon: CircleCheck, look: 'text-well', label: 'Made:' },
  failed: { icon: CircleAlert, look: 'text-failed', label: 'Failed:' },
  restored: { icon: RotateCcw, look: 'text-muted', label: 'Restored:' },
} as const

function Row({ row }: { row: Shown }) {
  const { icon: Icon, look, label } = LOOK[row.kind]
  return (
    <li className="flex items-start gap-2.5 px-3 py-2 text-sm">
      <Icon className={`mt-0.5 size-4 shrink-0 ${look}`} aria-label={label} />
      <div className="min-w-0 flex-1 [overflow-wrap:anywhere]">
        <p>
          <span className="font-medium tabular-nums">{formatMoment(Date.parse(row.at))}</span>
          {row.kind === 'made' && <span className="text-muted"> · {formatBytes(row.bytes)}</span>}
          {row.kind === 'restored' && <span className="text-muted"> · restored</span>}
        </p>
        <p className="text-xs text-muted">{row.words}</p>
        {row.kind === 'made' && (
          <p className="text-xs text-muted">{row.isRemoved ? 'No longer in the folder' : row.file}</p>
        )}
      </div>
    </li>
  )
}

// ── Commands

function backupCommand(status: BackupStatus | null): string {
  return status?.settings?.inContainer === true ? 'docker compose run --rm backup backup' : './sandlot backup'
}

function restoreCommand(status: BackupStatus | null, file: string): string {
  return status?.settings?.inContainer === true
    ? `docker compose run --rm backup restore ${file}`
    : `./sandlot restore ${file}`
}

function Command(props: { text: string; what: string }) {
  return (
    <div className="flex items-center gap-1 rounded-lg bg-sunken py-1 pr-1 pl-3">
      <code className="min-w-0 flex-1 py-1 text-xs [overflow-wrap:anywhere]">{props.text}</code>
      <CopyButton text={props.text} what={props.what} quiet />
    </div>
  )
}
