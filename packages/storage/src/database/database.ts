/**
 * Opens a Sandlot database through Kysely. Every file has one writing process, which migrates it
 * before it listens; others open it read-only and wait for the expected schema.
 */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '@sandlot/shared/base/errors'
import { Kysely, SqliteAdapter, SqliteDialect, SqliteDriver } from 'kysely'
import type { DatabaseConnection, DialectAdapter, Driver, SqliteDatabase } from 'kysely'
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

/** An SQLite file. */
interface OpenFile<Schema> extends OpenDatabase<Schema> {
  readonly health: StoreHealth
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
): Promise<OpenFile<Schema>> {
  const file = openSqliteWriter(path, mode)
  try {
    await migrate(path, file, migrations)
  } catch (error) {
    file.close()
    throw asStorageError(path, error)
  }
  return wrap<Schema>(path, file)
}

/**
 * Open read-only. Waits up to `waitMs` for the writer to create the file with the schema of
 * `migrations`. Throws `StorageError`: cannot_open, newer_schema, not_migrated; or the signal's
 * reason.
 */
export async function openReader<Schema>(
  path: string,
  migrations: Migrations,
  options: { waitMs?: number; signal?: AbortSignal } = {},
): Promise<OpenFile<Schema>> {
  const waitMs = options.waitMs ?? 30_000
  const until = performance.now() + waitMs
  for (;;) {
    options.signal?.throwIfAborted()
    const file = openIfReady(path, migrations)
    if (file !== undefined) return wrap<Schema>(path, file)
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
function openIfReady(path: string, migrations: Migrations): SqliteFile | undefined {
  if (!existsSync(path)) return undefined
  const file = openSqliteReader(path)
  try {
    const applied = appliedMigrations(file)
    refuseNewer(path, applied, migrations)
    if (Object.keys(migrations).every((name) => applied.includes(name))) return file
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
    refuseNewer(path, applied, migrations)
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

function refuseNewer(path: string, applied: readonly string[], migrations: Migrations): void {
  const unknown = applied.filter((name) => !Object.hasOwn(migrations, name))
  if (unknown.length === 0) return
  throw new StorageError(
    'newer_schema',
    `${path} was written by a newer version of Sandlot (it has ${unknown.join(', ')}). Run that version, or restore the copy that it made beside the file: ${path}.before-${unknown.at(-1)}.`,
  )
}

function wrap<Schema>(path: string, file: SqliteFile): OpenFile<Schema> {
  const db = new Kysely<Schema>({ dialect: new TransactionalSqliteDialect(file, withStatementCache(file)) })
  return { db, health: new StoreHealth(path, () => writeToHeader(file)), close: () => db.destroy() }
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

  constructor(file: SqliteFile, database: SqliteDatabase) {
    super({ database })
    this.#file = file
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await super.acquireConnection()
    guardParameters(connection)
    return connection
  }

  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#file.inTransaction) await super.rollbackTransaction(connection)
  }
}

class TransactionalSqliteDialect extends SqliteDialect {
  readonly #file: SqliteFile
  readonly #database: SqliteDatabase

  /** `database`: the file, or a wrapper that compiles its statements. */
  constructor(file: SqliteFile, database: SqliteDatabase = file) {
    super({ database })
    this.#file = file
    this.#database = database
  }

  override createDriver(): Driver {
    return new TransactionalSqliteDriver(this.#file, this.#database)
  }

  override createAdapter(): DialectAdapter {
    return new TransactionalSqliteAdapter()
  }
}
