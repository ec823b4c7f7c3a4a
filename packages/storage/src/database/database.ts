/**
 * Opens a Sandlot database through Kysely. Every file has one writing process, which migrates it
 * before it listens; others open it read-only and wait for the expected schema.
 */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '@sandlot/shared/base/errors'
import { Kysely, SqliteAdapter, SqliteDialect, SqliteDriver } from 'kysely'
import type { DatabaseConnection, DialectAdapter, Driver, QueryResult, SqliteDatabase } from 'kysely'
import { Migrator } from 'kysely/migration'
import { waitForLock } from './lock.ts'
import {
  appliedMigrations,
  asStorageError,
  copySqlite,
  isWithoutLog,
  openSqliteReader,
  openSqliteWriter,
  withStatementCache,
} from './sqlite-file.ts'
import type { FileMode, SqliteFile } from './sqlite-file.ts'
import { guardParameters } from './storable-parameters.ts'
import { StorageError } from '../storage-error.ts'
import { type Health, StoreHealth } from './store-health.ts'
import { WalSync } from './wal-sync.ts'

type Migration = (db: Kysely<unknown>) => Promise<void>

/**
 * Name → migration. Applied in alphabetical order, so begin names with a number: `001_first`. Never
 * edit a released one.
 */
export type Migrations = Record<string, Migration>

export interface OpenDatabase<Schema> {
  readonly db: Kysely<Schema>
  readonly health: Health
  readonly close: () => Promise<void>
}

/**
 * Open for the one writing process: creates the file, migrates it under an exclusive lock
 * (`<path>.migrating`), and copies an existing file to `<path>.before-<newest migration>` before it
 * changes it. `mode`: see `openSqliteWriter`. Throws `StorageError`: cannot_open, locked,
 * newer_schema, migration_failed.
 */
export async function openWriter<Schema>(
  path: string,
  migrations: Migrations,
  mode?: FileMode,
): Promise<OpenDatabase<Schema>> {
  const file = openSqliteWriter(path, mode)
  try {
    await migrate(path, file, migrations)
  } catch (error) {
    file.close()
    throw asStorageError(path, error)
  }
  // Without a log, on a file system that cannot share its memory, SQLite syncs every commit.
  if (file.pragma('journal_mode', { simple: true }) === 'wal') file.pragma('synchronous = NORMAL')
  return wrapWriter<Schema>(path, file)
}

/**
 * Open read-only. Waits up to `waitMs` for the writer to create the file with the schema of
 * these migrations. Throws `StorageError`: cannot_open, newer_schema, not_migrated; or the signal's
 * reason.
 */
export async function openReader<Schema>(
  path: string,
  migrations: readonly string[],
  options: { waitMs?: number; signal?: AbortSignal } = {},
): Promise<OpenDatabase<Schema>> {
  const waitMs = options.waitMs ?? 30_000
  const until = performance.now() + waitMs
  for (;;) {
    options.signal?.throwIfAborted()
    const file = openIfReady(path, migrations)
    if (file !== undefined) return wrapReader<Schema>(path, file)
    if (performance.now() >= until) {
      throw new StorageError(
        'not_migrated',
        `${path} was not there with the schema that this process needs within ${waitMs} ms. Is the process that writes it running, and of the same version?`,
      )
    }
    await sleep(100, undefined, options.signal === undefined ? {} : { signal: options.signal })
  }
}

/**
 * A connection if the file exists with every known migration. Undefined also for `isWithoutLog`.
 */
function openIfReady(path: string, migrations: readonly string[]): SqliteFile | undefined {
  if (!existsSync(path)) return undefined
  const file = openSqliteReader(path)
  try {
    const applied = appliedMigrations(file)
    refuseNewer(path, applied, migrations)
    if (migrations.every((name) => applied.includes(name))) return file
    file.close()
    return undefined
  } catch (error) {
    file.close()
    if (isWithoutLog(error)) return undefined
    throw asStorageError(path, error)
  }
}

async function migrate(path: string, file: SqliteFile, migrations: Migrations): Promise<void> {
  const lock = await waitForLock(`${path}.migrating`, 30_000)
  try {
    const applied = appliedMigrations(file)
    refuseNewer(path, applied, Object.keys(migrations))
    const missing = Object.keys(migrations).filter((name) => !applied.includes(name))
    if (missing.length === 0) return
    if (applied.length > 0) await copySqlite(file, `${path}.before-${missing.toSorted().at(-1)}`)

    // Its own Kysely, never destroyed: destroying it would close the file.
    const db = new Kysely<unknown>({ dialect: new TransactionalSqliteDialect(file) })
    const ups = Object.fromEntries(Object.entries(migrations).map(([name, up]) => [name, { up }]))
    const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(ups) } })
    const { error, results } = await migrator.migrateToLatest()
    if (error !== undefined) {
      const failed = results?.find((result) => result.status === 'Error')?.migrationName ?? 'a migration'
      throw new StorageError(
        'migration_failed',
        `${path} is unchanged: ${failed} failed: ${messageOf(error)}.`,
        {
          cause: error,
        },
      )
    }
  } finally {
    lock.release()
  }
}

function refuseNewer(path: string, applied: readonly string[], migrations: readonly string[]): void {
  const unknown = applied.filter((name) => !migrations.includes(name))
  if (unknown.length === 0) return
  throw new StorageError(
    'newer_schema',
    `${path} was written by a newer version of Sandlot (it has ${unknown.join(', ')}). Run that version, or restore the copy that it made beside the file: ${path}.before-${unknown.at(-1)}.`,
  )
}

/** Unsynced: its statements that are no reads, outside of a transaction or up to its end. */
function wrapWriter<Schema>(path: string, file: SqliteFile): OpenDatabase<Schema> {
  const cached = withStatementCache(file)
  // An earlier process may have ended before its sync.
  let wrote = true
  const prepare: typeof cached.prepare = (sql) => {
    const statement = cached.prepare(sql)
    wrote ||= !statement.readonly
    return statement
  }
  return wrap(path, file, { ...cached, prepare }, () => {
    const ended = wrote && !file.inTransaction
    if (ended) wrote = false
    return ended
  })
}

/** Unsynced: commits of the writing process, which SQLite shows at once. */
function wrapReader<Schema>(path: string, file: SqliteFile): OpenDatabase<Schema> {
  const version = file.prepare<[], number>('pragma data_version').pluck()
  let synced: number | undefined
  return wrap(path, file, withStatementCache(file), () => {
    const before = synced
    synced = version.get()
    return synced !== before
  })
}

/** `isUnsynced` is called after each statement. */
function wrap<Schema>(
  path: string,
  file: SqliteFile,
  database: SqliteDatabase,
  isUnsynced: () => boolean,
): OpenDatabase<Schema> {
  const log = new WalSync(path)
  const created = (connection: DatabaseConnection): void => {
    guardParameters(connection)
    syncBeforeReturn(connection, log, isUnsynced)
  }
  const db = new Kysely<Schema>({ dialect: new TransactionalSqliteDialect(file, database, created) })
  const health = new StoreHealth(
    path,
    () => writeToHeader(file),
    () => !file.inTransaction,
  )
  return {
    db,
    health: {
      typed: (error) => health.typed(error),
      problem: () => log.failure ?? health.problem(),
    },
    async close() {
      await db.destroy()
      await log.close()
    },
  }
}

/**
 * Lets statements of `connection` return only when the changes that they made or saw are on the
 * disk. The connection stays taken until then, so no other statement sees them earlier. After a
 * failed sync every statement is refused.
 */
function syncBeforeReturn(connection: DatabaseConnection, log: WalSync, isUnsynced: () => boolean): void {
  const execute: DatabaseConnection['executeQuery'] = connection.executeQuery.bind(connection)
  connection.executeQuery = async <R>(...query: Parameters<typeof execute>): Promise<QueryResult<R>> => {
    if (log.failure !== undefined) throw log.failure
    const result = await execute<R>(...query)
    if (isUnsynced()) await log.sync()
    return result
  }
}

/** The smallest possible write: an unused number on the first page. */
function writeToHeader(file: SqliteFile): void {
  file.pragma(`user_version = ${Date.now() % 1_000_000_000}`)
}

/**
 * SQLite can roll back schema changes; Kysely's dialect does not say so, and a failed migration
 * would stay half done.
 */
class TransactionalSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

/**
 * SQLite ends a transaction itself on a full or failing disk. A later rollback would throw, and
 * hide the cause.
 */
class TransactionalSqliteDriver extends SqliteDriver {
  readonly #file: SqliteFile

  constructor(file: SqliteFile, database: SqliteDatabase, created: Created) {
    super({ database, onCreateConnection: async (connection) => created(connection) })
    this.#file = file
  }

  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#file.inTransaction) await super.rollbackTransaction(connection)
  }
}

type Created = (connection: DatabaseConnection) => void

class TransactionalSqliteDialect extends SqliteDialect {
  readonly #file: SqliteFile
  readonly #database: SqliteDatabase
  readonly #created: Created

  /**
   * `database`: the file, or a wrapper that compiles its statements. `created` changes the
   * connection before its first statement.
   */
  constructor(file: SqliteFile, database: SqliteDatabase = file, created: Created = guardParameters) {
    super({ database })
    this.#file = file
    this.#database = database
    this.#created = created
  }

  override createDriver(): Driver {
    return new TransactionalSqliteDriver(this.#file, this.#database, this.#created)
  }

  override createAdapter(): DialectAdapter {
    return new TransactionalSqliteAdapter()
  }
}
