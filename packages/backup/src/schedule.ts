/** The status of backups, and the schedule. */
import { chownSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '@sandlot/shared/base/errors'
import {
  BACKUP_STATUS_FILE,
  type BackupSettings,
  type BackupStatus,
  type BackupTry,
  STORED_TRIES,
  backupStatus,
  nextBackup,
} from '@sandlot/shared/admin/backup-status'
import { type MadeBackup, backupsIn } from './backup.ts'
import { BackupError } from './backup-error.ts'
import type { Restored } from './restore.ts'

/** The clock may jump, and another backup may be made on demand. */
const RECHECK_MS = 60_000

interface BackupRecord {
  data: string
  by: BackupTry['by']
  settings: BackupSettings
  /** Deployment whose backups are listed. */
  deployment: string
}

/**
 * Makes a backup, and records the result in the data folder: one without some workspaces as made
 * and as failed; one that was stopped, or refused to an operator, not at all. Rejects as `make`
 * does.
 */
export async function recorded(record: BackupRecord, make: () => Promise<MadeBackup>): Promise<MadeBackup> {
  const { data, by } = record
  const tried = { at: new Date().toISOString(), by }
  try {
    const last = await make()
    const message = incomplete(last)
    if (message === undefined) write(record, { last }, { ...last, ...tried, did: 'backup' })
    else write(record, { last, failed: { at: tried.at, message } }, { ...tried, did: 'fail', message })
    return last
  } catch (error) {
    if (isRefused(error, by)) throw error
    const failed = { at: tried.at, message: messageOf(error) }
    write(record, { last: readStatus(data).last, failed }, { ...failed, by, did: 'fail' })
    throw error
  }
}

/** True if backups work: a person corrects the command, or the next backup follows. */
function isRefused(error: unknown, by: BackupTry['by']): boolean {
  if (!(error instanceof BackupError)) return false
  const { code } = error
  return code === 'stopped' || (by === 'operator' && (code === 'running' || code === 'no_passphrase'))
}

/** Says what a backup was made without; undefined where it has everything. */
export function incomplete({ file, leftOut }: MadeBackup): string | undefined {
  if (leftOut.length === 0) return undefined
  const lines = leftOut.map(({ name, message }) => `${name} (${message})`)
  return `${file} has everything but ${leftOut.length} workspaces: ${lines.join(' ')}`
}

/** Records that the data folder was restored from a backup. */
export function recordRestore(record: BackupRecord, { at: of, version, workspaces }: Restored): void {
  const at = new Date().toISOString()
  write(record, {}, { at, by: record.by, did: 'restore', of, version, workspaces })
}

/** Records the settings, so that the page shows when the next backup is due. */
export function recordSettings(record: BackupRecord): void {
  const { last, failed } = readStatus(record.data)
  write(record, { last, failed }, undefined)
}

function write(
  { data, settings, deployment }: BackupRecord,
  status: Pick<BackupStatus, 'last' | 'failed'>,
  tried: BackupTry | undefined,
): void {
  const tries = [...(tried === undefined ? [] : [tried]), ...(readStatus(data).tries ?? [])]
  const files = existsSync(settings.folder) ? backupsIn(settings.folder, deployment).toReversed() : []
  writeStatus(data, { ...status, tries: tries.slice(0, STORED_TRIES), settings, files })
}

interface Schedule {
  data: string
  everyMs: number
  /** Called again later after a failure. */
  make: () => Promise<void>
  signal: AbortSignal
}

/** Resolves when the signal is aborted. */
export async function keepSchedule({ data, everyMs, make, signal }: Schedule): Promise<void> {
  while (!signal.aborted) {
    const waitMs = nextBackup(readStatus(data), everyMs, Date.now()) - Date.now()
    if (waitMs <= 0) await make()
    const pauseMs = waitMs <= 0 ? RECHECK_MS : Math.min(waitMs, RECHECK_MS)
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
  }
}

function readStatus(data: string): BackupStatus {
  try {
    return backupStatus.parse(JSON.parse(readFileSync(join(data, BACKUP_STATUS_FILE), 'utf8')))
  } catch {
    return {} // none yet, or incomplete after a power failure; the next backup writes it again
  }
}

/** Readable for the group too: with compose, the service reads it for its alerts. */
function writeStatus(data: string, value: BackupStatus): void {
  const file = join(data, BACKUP_STATUS_FILE)
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(value)}\n`, { mode: 0o640 })
  if (process.getuid?.() === 0) {
    const { uid, gid } = statSync(data)
    chownSync(draft, uid, gid)
  }
  renameSync(draft, file)
}
