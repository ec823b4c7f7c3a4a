/**
 * The only file that imports better-sqlite3: opens a database file with the settings that we rely
 * on.
 */
import { chmodSync, closeSync, fdatasyncSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf, hasCode } from '@sandlot/shared/base/errors'
import Database from 'better-sqlite3'
import { StorageError, type StorageErrorCode } from '../storage-error.ts'

export type SqliteFile = Database.Database

/** How long a statement waits for another process's lock before it fails, in milliseconds. */
const BUSY_TIMEOUT_MS = 5_000

/** For the owner alone, or to read for the owner's group too. */
export type FileMode = 0o600 | 0o640

/**
 * Open (and create) a file for its one writing process. A commit is on the disk when it returns.
 * The file gets `mode`, also where it existed, and so do its `-wal` and `-shm`.
 * Throws `StorageError('cannot_open')`.
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

/**
 * Open an existing file for reading only. Throws `StorageError('cannot_open')`, also when there is
 * none. A process that may not write to the folder can read while a writer has the file open, or
 * has died and left its `-wal` and `-shm`; otherwise statements throw what `isWithoutLog` is true
 * for.
 */
export function openSqliteReader(path: string): SqliteFile {
  return guard(
    path,
    () => new Database(path, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS }),
  )
}

/**
 * Take the exclusive lock of a file that serves as nothing but a lock. Undefined when it is held,
 * here or in another process. Closing the file, or the death of the process, releases it.
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

/** Of a copy that is made beside others' work: so much is on the disk before more follows. */
const GENTLE_PAGES = 2_048
const LONGEST_REST_MS = 500

/**
 * Write a consistent copy of an open database, also while others write to it. An existing copy is
 * replaced; a copy that failed is removed. `gently`: in steps, with a rest of the same length after
 * each, so that commits of others do not wait for all of it. Blocks this process meanwhile.
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

/** As long as a commit may take that is under way. */
const COMMIT_MS = 30

/**
 * Takes the write lock of an existing database until the file is closed. Undefined where another
 * keeps it for longer than a commit. Throws `StorageError('cannot_open')`.
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
 * Checks every page of a copy and takes its log away, so that the one file is all of it. Returns
 * its migrations. Throws `StorageError('corrupt')`, or what SQLite throws.
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

/** The names of the migrations that a database has; none where it was never migrated. */
export function appliedMigrations(file: SqliteFile): string[] {
  const table = file
    .prepare("select 1 from sqlite_master where type = 'table' and name = 'kysely_migration'")
    .get()
  if (table === undefined) return []
  return file.prepare<[], string>('select name from kysely_migration order by name').pluck().all()
}

/**
 * Create the file if there is none, and set its mode. SQLite gives `-wal` and `-shm` the mode of
 * their database; those that are left of an earlier run are set as well. Never opens a file that
 * exists: closing it would drop the locks that this process has on it.
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
 * Of a reader that may not write to the folder: the file is closed, so it has no `-wal` and `-shm`.
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

/**
 * What SQLite threw, as a `StorageError` where it concerns the file and not a statement of ours.
 */
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
