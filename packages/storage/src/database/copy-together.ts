/** Copies of several databases as of one moment, also while their processes write. */
import { setTimeout as sleep } from 'node:timers/promises'
import { StorageError } from '../storage-error.ts'
import { asStorageError, checkCopy, copySqlite, openSqliteReader, refuseWrites } from './sqlite-file.ts'
import type { SqliteFile } from './sqlite-file.ts'

/** Attempts to reach one moment, and the pause between them. */
const TRIES = 100
const BETWEEN_MS = 50

/**
 * Copies each `path` to its `target`, all as of one moment: the write locks of all are held
 * together for the milliseconds in which a read transaction begins on each. Writers wait that long,
 * and continue while the pages are copied. Each copy is checked, and complete without a log.
 * Returns the names of each one's migrations. Throws `StorageError`: cannot_open, locked, full, io,
 * corrupt.
 */
export async function copyTogether(
  copies: readonly { path: string; target: string }[],
): Promise<{ migrations: string[] }[]> {
  const moment = await oneMoment(copies.map(({ path }) => path))
  try {
    const copied: { migrations: string[] }[] = []
    for (const [index, { path, target }] of copies.entries()) {
      const reader = moment.readers[index]
      if (reader === undefined) throw new Error('a reader is missing')
      try {
        await copySqlite(reader, target, true)
        copied.push({ migrations: checkCopy(target) })
      } catch (error) {
        throw asStorageError(path, error)
      }
    }
    return copied
  } finally {
    moment.close()
  }
}

interface Moment {
  /** Each in a read transaction, all as of the same moment. */
  readers: SqliteFile[]
  close(): void
}

async function oneMoment(paths: readonly string[]): Promise<Moment> {
  for (let tries = 1; ; tries += 1) {
    const moment = tryMoment(paths)
    if (moment !== undefined) return moment
    if (tries === TRIES)
      throw new StorageError('locked', `${paths.join(' and ')}: another process writes without a pause.`)
    await sleep(BETWEEN_MS)
  }
}

/** Undefined if one of them stays locked: writers of the others wait during the attempt. */
function tryMoment(paths: readonly string[]): Moment | undefined {
  const held: SqliteFile[] = []
  const readers: SqliteFile[] = []
  // Writers close last: the last handle of a file removes its log.
  const close = (): void => {
    for (const file of [...readers, ...held]) file.close()
  }
  try {
    for (const path of paths) {
      const writes = refuseWrites(path)
      if (writes === undefined) {
        close()
        return undefined
      }
      held.push(writes)
    }
    for (const path of paths) {
      const reader = openSqliteReader(path)
      readers.push(reader)
      reader.exec('BEGIN')
      // A transaction's snapshot begins at its first read.
      reader.prepare('select count(*) from sqlite_master').get()
    }
    for (const writes of held) writes.exec('ROLLBACK')
    return { readers, close }
  } catch (error) {
    close()
    throw error
  }
}
