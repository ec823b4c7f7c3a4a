/** How the last backup ended, and when the next one is due. */
import { chownSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '@sandlot/shared/errors'
import { BACKUP_STATUS_FILE, type BackupStatus, backupStatus } from '@sandlot/shared/office/backup-status'
import type { MadeBackup } from './backup.ts'

/** What failed is tried again after that, or earlier where backups are made more often. */
const AGAIN_MS = 3_600_000
/** A clock may step, and another backup may have been asked for. */
const LOOK_AGAIN_MS = 60_000

/** Makes a backup, and records in the data folder how it ended. Rejects as `make` does. */
export async function recorded(data: string, make: () => Promise<MadeBackup>): Promise<MadeBackup> {
  try {
    const last = await make()
    writeStatus(data, { last })
    return last
  } catch (error) {
    const failed = { at: new Date().toISOString(), message: messageOf(error) }
    writeStatus(data, { last: readStatus(data).last, failed })
    throw error
  }
}

interface Schedule {
  data: string
  everyMs: number
  /** What fails is tried again later. */
  make: () => Promise<void>
  signal: AbortSignal
}

/** Resolves when the signal is aborted. */
export async function keepSchedule({ data, everyMs, make, signal }: Schedule): Promise<void> {
  while (!signal.aborted) {
    const waitMs = nextBackup(readStatus(data), everyMs, Date.now()) - Date.now()
    if (waitMs <= 0) await make()
    // Rejects only with the signal, and then the loop is over anyway.
    const pauseMs = waitMs <= 0 ? LOOK_AGAIN_MS : Math.min(waitMs, LOOK_AGAIN_MS)
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
  }
}

/**
 * One interval after the last; at once where that has passed or there was none. A record from the
 * future says that the clock has stepped, and counts as now.
 */
function nextBackup({ last, failed }: BackupStatus, everyMs: number, now: number): number {
  const time = (of: { at: string } | undefined): number | undefined =>
    of === undefined ? undefined : Math.min(Date.parse(of.at), now)
  const [made, tried] = [time(last), time(failed)]
  const due = made === undefined ? now : made + everyMs
  return tried === undefined ? due : Math.max(due, tried + Math.min(AGAIN_MS, everyMs))
}

function readStatus(data: string): BackupStatus {
  try {
    return backupStatus.parse(JSON.parse(readFileSync(join(data, BACKUP_STATUS_FILE), 'utf8')))
  } catch {
    return {} // never made, or half written when the power went: the next backup says it again
  }
}

/** For the owner of the folder and its group: with compose the service reads it, for its alerts. */
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
