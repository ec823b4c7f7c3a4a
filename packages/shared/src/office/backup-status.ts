import { z } from 'zod'

/** In the data folder; written by each backup, read by its schedule and by `doctor`. */
export const BACKUP_STATUS_FILE = 'backup-status.json'

/** How the last backup ended. */
export const backupStatus = z.object({
  /** The last one that was made, and read again from its first byte to its last. */
  last: z.object({ at: z.string(), file: z.string(), bytes: z.int(), workspaces: z.int() }).optional(),
  /** Of a later one that was not made. */
  failed: z.object({ at: z.string(), message: z.string() }).optional(),
})
export type BackupStatus = z.infer<typeof backupStatus>
