/** Moves pages of an SQLite log into its database on a thread, with its own handle. */
import { workerData } from 'node:worker_threads'
import { openSqliteAgain } from '../database/sqlite-file.ts'

const INTERVAL_MS = 1_000
/** Fewer pages of the log (4 KiB each) do not justify the two syncs of a checkpoint. */
const FEW_PAGES = 250

const file = openSqliteAgain(workerData as string)

setInterval(() => {
  const [found] = file.pragma('wal_checkpoint(noop)') as [{ log: number; checkpointed: number }]
  if (found.log - found.checkpointed >= FEW_PAGES) file.pragma('wal_checkpoint(passive)')
}, INTERVAL_MS)
