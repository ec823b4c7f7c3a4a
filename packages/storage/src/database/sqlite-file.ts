/** The only file that imports better-sqlite3: opens a database file with our required settings. */
import { chmodSync, closeSync, fdatasyncSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf, hasCode } from '@sandlot/shared/base/errors'
import Database from 'better-sqlite3'
import { LRUCache } from 'lru-cache'
import { StorageError, type StorageErrorCode } from '../storage-error.ts'

export type SqliteFile = Database.Database

/** Milliseconds for which a statement waits for another process's lock. */
const BUSY_TIMEOUT_MS = 5_000

/** For the owner alone, or readable by the owner's group too. */
export type FileMode = 0o600 | 0o640

/**
 * Open (and create) a file for its one writing process. A commit is on the disk when it returns,
 * unless the caller changes `synchronous`. Sets `mode` on the file, also on an existing one, and on
 * its `-wal` and `-shm`. Throws `StorageError('cannot_open')`.
 */
export function openSqliteWriter(path: string, mode: FileMode = 0o600): SqliteFile {
  return guard(path, () => {
    mkdirSync(dirname(path), { recursive: true })
    ensureFile(path, mode)
    const file = new Database(path, { timeout: BUSY_TIMEOUT_MS })
    try {
      file.pragma('journal_mode = WAL')
      file.pragma('synchronous = FULL')
      file.pragma('foreign_keys = ON')
    } catch (error) {
      file.close()
      throw error
    }
    return file
  })
}

/** A second handle for writing, of a file that this process has open. */
export function openSqliteAgain(path: string): SqliteFile {
  return guard(path, () => new Database(path, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS }))
}

/** Loads the native module, which is otherwise loaded with the first file. */
export function loadSqlite(): void {
  new Database(':memory:').close()
}

/**
 * Open an existing file read-only. Throws `StorageError('cannot_open')`, also if it is missing. A
 * process without write access to the folder can read while a writer has the file open, or has
 * crashed and left its `-wal` and `-shm`; otherwise statements throw errors that match
 * `isWithoutLog`.
 */
export function openSqliteReader(path: string): SqliteFile {
  return guard(
    path,
    () => new Database(path, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS }),
  )
}

/**
 * Take the exclusive lock of a file that serves only as a lock. Undefined when it is held, here or
 * in another process. Closing the file, or the end of the process, releases it.
 */
export function openSqliteLock(path: string): SqliteFile | undefined {
  return guard(path, () => {
    mkdirSync(dirname(path), { recursive: true })
    ensureFile(path, 0o600)
    const file = new Database(path, { timeout: 0 })
    try {
      file.exec('BEGIN EXCLUSIVE')
      return file
    } catch (error) {
      file.close()
      if (isBusy(error)) return undefined
      throw error
    }
  })
}

/** Pages of a gentle copy that are synced to the disk before more follow. */
const GENTLE_PAGES = 2_048
const LONGEST_REST_MS = 500

/**
 * Write a consistent copy of an open database, also during writes of others. An existing copy is
 * replaced; a failed copy is removed. `gently`: in steps, with a pause of the same length after
 * each, so that commits of others do not wait for all of it. Blocks this process.
 */
export async function copySqlite(file: SqliteFile, target: string, gently = false): Promise<void> {
  ensureFile(target, 0o600)
  try {
    await (gently ? copyGently(file, target) : file.backup(target))
  } catch (error) {
    rmSync(target, { force: true })
    throw error
  }
}

async function copyGently(file: SqliteFile, target: string): Promise<void> {
  const descriptor = openSync(target, 'r+')
  let begun = performance.now()
  try {
    await file.backup(target, {
      progress() {
        fdatasyncSync(descriptor)
        sleepSync(Math.min(performance.now() - begun, LONGEST_REST_MS))
        begun = performance.now()
        return GENTLE_PAGES
      },
    })
  } finally {
    closeSync(descriptor)
  }
}

function sleepSync(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** The longest time of a commit in progress; it lets other work run in between. */
const COMMIT_MS = 100

/**
 * Takes the write lock of an existing database until the file is closed. Undefined if another holds
 * it for longer than a commit. Throws `StorageError('cannot_open')`.
 */
export function refuseWrites(path: string): SqliteFile | undefined {
  return guard(path, () => {
    const file = new Database(path, { fileMustExist: true, timeout: COMMIT_MS })
    try {
      file.exec('BEGIN IMMEDIATE')
      return file
    } catch (error) {
      file.close()
      if (isBusy(error)) return undefined
      throw error
    }
  })
}

/**
 * Checks every page of a copy and removes its log, so that the file is complete. Returns its
 * migrations. Throws `StorageError('corrupt')`, or SQLite's errors.
 */
export function checkCopy(path: string): string[] {
  const file = new Database(path, { fileMustExist: true })
  try {
    file.pragma('journal_mode = DELETE')
    const found = file.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok') throw new StorageError('corrupt', `${path}: the file is damaged (${String(found)}).`)
    return appliedMigrations(file)
  } finally {
    file.close()
  }
}

type Statement = ReturnType<SqliteFile['prepare']>

/** The least recently used is evicted. */
const MOST_STATEMENTS = 200
/** Longer ones write many rows, and the same number rarely repeats. */
const LONGEST_SQL = 1_000

/**
 * Kysely's interface to `file` with a cache of compiled statements: compiling one takes longer
 * than running it. Only for a file whose schema no longer changes.
 */
export function withStatementCache(file: SqliteFile): {
  prepare: (sql: string) => Statement
  close: () => void
} {
  const cache = new LRUCache<string, Statement>({ max: MOST_STATEMENTS })
  return {
    prepare(sql) {
      const known = cache.get(sql)
      // A statement cannot restart while its rows are being read.
      if (known?.busy === true || sql.length > LONGEST_SQL) return file.prepare(sql)
      const statement = known ?? file.prepare(sql)
      cache.set(sql, statement)
      return statement
    },
    close() {
      cache.clear()
      file.close()
    },
  }
}

/** Names of a database's applied migrations; none if it was never migrated. */
export function appliedMigrations(file: SqliteFile): string[] {
  const table = file
    .prepare("select 1 from sqlite_master where type = 'table' and name = 'kysely_migration'")
    .get()
  if (table === undefined) return []
  return file.prepare<[], string>('select name from kysely_migration order by name').pluck().all()
}

/**
 * Create the file if missing, and set its mode. SQLite gives `-wal` and `-shm` the mode of their
 * database; remaining ones of an earlier run are set as well. Never opens an existing file: closing
 * it would drop this process's locks on it.
 */
function ensureFile(path: string, mode: FileMode): void {
  try {
    closeSync(openSync(path, 'wx', mode))
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
  for (const each of [path, `${path}-wal`, `${path}-shm`]) {
    const found = statSync(each, { throwIfNoEntry: false })
    if (found !== undefined && (found.mode & 0o777) !== mode) chmodSync(each, mode)
  }
}

/**
 * For a reader without write access to the folder: the file is closed, so it has no `-wal` and
 * `-shm`.
 */
export function isWithoutLog(error: unknown): boolean {
  return (
    error instanceof Database.SqliteError &&
    (error.code === 'SQLITE_READONLY_DIRECTORY' || error.code.startsWith('SQLITE_CANTOPEN'))
  )
}

/** True for "database is locked" in its several forms. */
function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
}

/** SQLite's errors, as a `StorageError` if they concern the file and not a statement of ours. */
export function asStorageError(path: string, error: unknown): unknown {
  if (!(error instanceof Database.SqliteError)) return error
  const { code } = error
  const storageError = (ours: StorageErrorCode, words: string): StorageError =>
    new StorageError(ours, `${path}: ${words} (${messageOf(error)}).`, { cause: error })
  if (isBusy(error)) {
    return storageError('locked', `another process has held it for ${BUSY_TIMEOUT_MS} ms; end that one`)
  }
  if (code === 'SQLITE_FULL') return storageError('full', 'there is no space left on its disk; make room')
  if (code.startsWith('SQLITE_IOERR')) return storageError('io', 'its disk refused a read or a write')
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') {
    return storageError('corrupt', 'the file is damaged; restore it from a copy')
  }
  return error
}

function guard<T>(path: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    throw new StorageError('cannot_open', `Cannot open the database ${path}: ${messageOf(error)}.`, {
      cause: error,
    })
  }
}
