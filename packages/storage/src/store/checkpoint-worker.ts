/** Moves pages of an SQLite log into its database on a thread, with its own handle. */
import { hasCode } from '@sandlot/shared/base/errors'
import { openSqliteAgain } from '../database/sqlite-file.ts'
import { threadDatabase, threadLoaded } from '../database/thread.ts'

const INTERVAL_MS = 1_000
/** Fewer pages of the log (4 KiB each) do not justify the two syncs of a checkpoint. */
const FEW_PAGES = 250

const file = openSqliteAgain(threadDatabase().path)
threadLoaded()

setInterval(() => {
  try {
    const [found] = file.pragma('wal_checkpoint(noop)') as [{ log: number; checkpointed: number }]
    if (found.log - found.checkpointed >= FEW_PAGES) file.pragma('wal_checkpoint(passive)')
  } catch (error) {
    // After a failed sync, the log on the disk may lack pages that a second attempt would rely on.
    // Other pages stay in the log, equally durable, until the next look.
    if (hasCode(error, 'SQLITE_IOERR_FSYNC')) throw error
  }
}, INTERVAL_MS)
