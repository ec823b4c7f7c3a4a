/** Backups: how they went, as each leaves it in the data folder, and as administrators see it. */
import { z } from 'zod'

/** In the data folder; written by each backup and restore, read by the service and `doctor`. */
export const BACKUP_STATUS_FILE = 'backup-status.json'
/** So many tries are kept. */
export const KEPT_TRIES = 50

const made = { file: z.string(), bytes: z.int(), workspaces: z.int() }
/** When it was tried, as ISO text, and by what. */
const tried = { at: z.string(), by: z.enum(['schedule', 'operator']) }

const backupTry = z.discriminatedUnion('did', [
  z.object({ ...tried, did: z.literal('backup'), ...made }),
  z.object({ ...tried, did: z.literal('fail'), message: z.string() }),
  /** The data folder was made of a backup: of when, of which version. */
  z.object({ ...tried, did: z.literal('restore'), of: z.string(), version: z.string(), workspaces: z.int() }),
])
export type BackupTry = z.infer<typeof backupTry>

/** What is set, as the last process that made backups knew it. */
const backupSettings = z.object({
  folder: z.string(),
  keep: z.int(),
  /** Null: only when asked. */
  everyMs: z.number().nullable(),
  /** Paths are those in the container of compose. */
  inContainer: z.boolean(),
})
export type BackupSettings = z.infer<typeof backupSettings>

const backupFile = z.object({ file: z.string(), at: z.string(), bytes: z.number() })

/** Everything but the first two came later. */
export const backupStatus = z.object({
  /** The last one that was made, and read again from its first byte to its last. */
  last: z.object({ at: z.string(), ...made }).optional(),
  /** Of a later one that was not made. */
  failed: z.object({ at: z.string(), message: z.string() }).optional(),
  /** The newest first. */
  tries: z.array(backupTry).optional(),
  settings: backupSettings.optional(),
  /** In the folder of the settings, the newest first. */
  files: z.array(backupFile).optional(),
})
export type BackupStatus = z.infer<typeof backupStatus>

/** What failed is tried again after that, or earlier where backups are made more often. */
const AGAIN_MS = 3_600_000

/**
 * One interval after the last; at once where that has passed or there was none. A record from the
 * future says that the clock has stepped, and counts as now.
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
  /** Null: none was ever tried. */
  status: backupStatus.nullable(),
  /** Epoch milliseconds; null: none is made by itself. */
  nextAt: z.number().nullable(),
})
export type BackupsView = z.infer<typeof backupsView>
