/** Status of backups: the record in the data folder, and the administrators' view. */
import { z } from 'zod'

/** In the data folder; written by each backup and restore, read by the service and `doctor`. */
export const BACKUP_STATUS_FILE = 'backup-status.json'
/** Number of stored attempts. */
export const STORED_TRIES = 50

const made = { file: z.string(), bytes: z.int(), workspaces: z.int() }
/** The time of the attempt, as ISO text, and its origin. */
const tried = { at: z.string(), by: z.enum(['schedule', 'operator']) }

const backupTry = z.discriminatedUnion('did', [
  z.object({ ...tried, did: z.literal('backup'), ...made }),
  z.object({ ...tried, did: z.literal('fail'), message: z.string() }),
  /** The data folder was restored from a backup of this time and version. */
  z.object({ ...tried, did: z.literal('restore'), of: z.string(), version: z.string(), workspaces: z.int() }),
])
export type BackupTry = z.infer<typeof backupTry>

/** Settings of the last process that made backups. */
const backupSettings = z.object({
  folder: z.string(),
  keep: z.int(),
  /** Null: only on request. */
  everyMs: z.number().nullable(),
  /** Paths are those in the container of compose. */
  inContainer: z.boolean(),
})
export type BackupSettings = z.infer<typeof backupSettings>

const backupFile = z.object({ file: z.string(), at: z.string(), bytes: z.number() })

/** Everything except the first two members was added later. */
export const backupStatus = z.object({
  /** The last verified one. */
  last: z.object({ at: z.string(), ...made }).optional(),
  /** A later attempt that failed, or the last one, made without some workspaces. */
  failed: z.object({ at: z.string(), message: z.string() }).optional(),
  /** Newest first. */
  tries: z.array(backupTry).optional(),
  settings: backupSettings.optional(),
  /** In the folder of the settings, newest first. */
  files: z.array(backupFile).optional(),
})
export type BackupStatus = z.infer<typeof backupStatus>

/** A failed backup is retried after this time, or after a shorter interval. */
const AGAIN_MS = 3_600_000

/**
 * One interval after the last; now if that has passed or there was none. A record from the future
 * means that the clock was changed, and counts as now.
 */
export function nextBackup({ last, failed }: BackupStatus, everyMs: number, now: number): number {
  const time = (of: { at: string } | undefined): number | undefined =>
    of === undefined ? undefined : Math.min(Date.parse(of.at), now)
  const [madeAt, triedAt] = [time(last), time(failed)]
  const due = madeAt === undefined ? now : madeAt + everyMs
  return triedAt === undefined ? due : Math.max(due, triedAt + Math.min(AGAIN_MS, everyMs))
}

/** `GET /api/admin/backups`. */
export const backupsView = z.object({
  /** Null: none was attempted. */
  status: backupStatus.nullable(),
  /** Epoch milliseconds; null: no automatic backups. */
  nextAt: z.number().nullable(),
})
export type BackupsView = z.infer<typeof backupsView>
