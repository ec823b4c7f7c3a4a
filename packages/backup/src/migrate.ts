/** Moves the databases of a data folder into PostgreSQL. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type FileLock, lockFile } from '@sandlot/storage/database/lock'
import { type MovedTable, moveToPostgres } from '@sandlot/storage/migrate/to-postgres'
import { BackupError } from './backup-error.ts'
import { databasePath, deploymentOf } from './data-folder.ts'

export interface Migrated {
  tables: MovedTable[]
  /** Paths of the database files, which are unchanged. */
  files: string[]
}

/** Throws `BackupError`: no_deployment, running; `StorageError`. */
export async function migrate(options: {
  data: string
  url: string
  doing: (what: string) => void
}): Promise<Migrated> {
  const { data, url, doing } = options
  deploymentOf(data, true)
  const files = { sessions: databasePath(data, 'sessions.db'), accounts: databasePath(data, 'accounts.db') }
  const run = join(data, 'run')
  mkdirSync(run, { recursive: true, mode: 0o750 })
  const locks: FileLock[] = []
  try {
    // A running agent or service holds one of these.
    for (const path of [join(run, 'agent.lock'), `${files.accounts}.writing`]) {
      const lock = lockFile(path)
      if (lock === undefined)
        throw new BackupError(
          'running',
          'Sandlot is running; nothing was moved.',
          'Stop it with ./sandlot down, then run this again.',
        )
      locks.push(lock)
    }
    const tables = await moveToPostgres({ files, folder: join(run, 'moving'), url, doing })
    return { tables, files: Object.values(files) }
  } finally {
    for (const lock of locks) lock.release()
  }
}
