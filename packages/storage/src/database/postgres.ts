/**
 * The only file that imports pg: opens a database of PostgreSQL through Kysely. Each store has a
 * schema of its own in it, so that both may share one database.
 */
import { messageOf } from '@sandlot/shared/errors'
import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  HandleEmptyInListsPlugin,
  Kysely,
  PostgresDialect,
  type PostgresDialectConfig,
  PostgresDriver,
  type TransactionSettings,
  replaceWithNoncontingentExpression,
  sql,
} from 'kysely'
import { Migrator } from 'kysely/migration'
import pg from 'pg'
import { StorageError, type StorageErrorCode } from '../storage-error.ts'
import type { Migrations, OpenDatabase } from './database.ts'
import type { Health } from './store-health.ts'

/** Connections of one process. */
const MOST_CONNECTIONS = 10
/** Milliseconds. */
const CONNECT_MS = 10_000
const STATEMENT_MS = 60_000
const IDLE_IN_TRANSACTION_MS = 60_000

/** Of `bigint`, and of sums of them. */
const NUMBERS: readonly number[] = [pg.types.builtins.INT8, pg.types.builtins.NUMERIC]

/** How our processes are called in `pg_stat_activity`, unless the address says another name. */
const NAME = 'sandlot'

interface PostgresPlace {
  /** `postgres://…` */
  url: string
  /** Where the tables of the store are. */
  schema: StoreName
}

export type StoreName = 'sessions' | 'accounts'

export function isPostgres(where: string): boolean {
  return /^postgres(ql)?:\/\//.test(where)
}

/**
 * Opens and migrates it. Of several that do this at once one migrates, and the others wait. Throws
 * `StorageError`: cannot_open, newer_schema, migration_failed.
 */
export async function openPostgres<Schema>(
  place: PostgresPlace,
  migrations: Migrations,
): Promise<OpenDatabase<Schema>> {
  const health = new PostgresHealth(place)
  const pool = poolOf(place, health)
  const db = new Kysely<Schema>({
    dialect: place.schema === 'accounts' ? new SerialDialect({ pool }) : new PostgresDialect({ pool }),
    // SQLite takes an empty list.
    plugins: [new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression })],
  })
  health.watch(db)
  try {
    await migrate(place, db, migrations)
    return { db, health, close: () => db.destroy() }
  } catch (error) {
    await db.destroy()
    throw health.typed(error)
  }
}

/**
 * One connection without a store's schema and migrations, for what concerns the database as a
 * whole; a transaction of it may take as long as it takes.
 */
export function connectPostgres(url: string): OpenDatabase<unknown> {
  const pool = new pg.Pool({
    connectionString: url,
    fallback_application_name: NAME,
    max: 1,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: 0,
    idle_in_transaction_session_timeout: 0,
  })
  const health = new PostgresHealth({ url, schema: 'sessions' })
  pool.on('error', (error) => health.typed(error))
  pool.on('connect', (client) => client.on('error', (error) => health.typed(error)))
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  return { db, health, close: () => db.destroy() }
}

function poolOf({ url, schema }: PostgresPlace, health: PostgresHealth): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    fallback_application_name: NAME,
    options: `-c search_path=${schema}`,
    max: MOST_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    types: { getTypeParser },
  })
  // A connection that rests is lost; the next statement opens another.
  pool.on('error', (error) => health.typed(error))
  // One that is lost between two statements of a transaction would end the process.
  pool.on('connect', (client) => client.on('error', (error) => health.typed(error)))
  return pool
}

/** Milliseconds without an answer after which its connection is taken for lost. */
const LISTENING_QUERY_MS = 10_000

/** One connection of its own, for notifications and locks that last as long as it does. */
export type ListeningClient = pg.Client

export function listeningClient({ url, schema }: PostgresPlace): ListeningClient {
  return new pg.Client({
    connectionString: url,
    fallback_application_name: NAME,
    options: `-c search_path=${schema}`,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: LISTENING_QUERY_MS,
    keepAlive: true,
    types: { getTypeParser },
  })
}

/**
 * Its transactions come one after the other, over all processes, as they do on a file: what they
 * read (who is the last administrator) stays true until they end.
 */
class SerialDialect extends PostgresDialect {
  readonly #config: PostgresDialectConfig

  constructor(config: PostgresDialectConfig) {
    super(config)
    this.#config = config
  }

  override createDriver(): Driver {
    return new SerialDriver(this.#config)
  }
}

class SerialDriver extends PostgresDriver {
  override async beginTransaction(
    connection: DatabaseConnection,
    settings: TransactionSettings,
  ): Promise<void> {
    await super.beginTransaction(connection, settings)
    await connection.executeQuery(
      CompiledQuery.raw("select pg_advisory_xact_lock(hashtext('sandlot accounts'))"),
    )
  }
}

/** Numbers of ours are whole and below 2^53. */
const getTypeParser: pg.CustomTypesConfig['getTypeParser'] = (type, format) =>
  NUMBERS.includes(type) ? Number : pg.types.getTypeParser(type, format)

async function migrate<Schema>(
  { schema }: PostgresPlace,
  db: Kysely<Schema>,
  migrations: Migrations,
): Promise<void> {
  await db.connection().execute(async (connection) => {
    // Making a schema or the migrator's own tables fails where two do it at once.
    await sql`select pg_advisory_lock(hashtext(${`sandlot ${schema} migrates`}))`.execute(connection)
    try {
      await migrateAlone(schema, db, migrations)
    } finally {
      await sql`select pg_advisory_unlock_all()`.execute(connection)
    }
  })
}

async function migrateAlone<Schema>(
  schema: StoreName,
  db: Kysely<Schema>,
  migrations: Migrations,
): Promise<void> {
  await sql`create schema if not exists ${sql.id(schema)}`.execute(db)
  const migrator = new Migrator({
    db,
    provider: { getMigrations: () => Promise.resolve(migrations) },
    migrationTableSchema: schema,
  })
  await refuseNewer(schema, db, migrations)
  const { error, results } = await migrator.migrateToLatest()
  if (error === undefined) return
  const failed = results?.find((result) => result.status === 'Error')?.migrationName ?? 'a migration'
  throw new StorageError(
    'migration_failed',
    `The database is unchanged: ${failed} failed: ${messageOf(error)}.`,
    { cause: error },
  )
}

async function refuseNewer<Schema>(
  schema: string,
  db: Kysely<Schema>,
  migrations: Migrations,
): Promise<void> {
  const table = await sql<{ name: string | null }>`
    select to_regclass(${`${schema}.kysely_migration`})::text as name
  `.execute(db)
  if (table.rows[0]?.name == null) return
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db)
  const unknown = rows.map(({ name }) => name).filter((name) => !Object.hasOwn(migrations, name))
  if (unknown.length === 0) return
  throw new StorageError(
    'newer_schema',
    `The database was written by a newer version of Sandlot (it has ${unknown.join(', ')}). Run that version, or restore a backup of before.`,
  )
}

/** Failures are remembered until a statement that asks for nothing succeeds again. */
class PostgresHealth implements Health {
  readonly #place: PostgresPlace
  #failure: StorageError | undefined
  #probe: () => Promise<unknown> = () => Promise.resolve()

  constructor(place: PostgresPlace) {
    this.#place = place
  }

  watch<Schema>(db: Kysely<Schema>): void {
    this.#probe = () => sql`select 1`.execute(db)
  }

  typed(error: unknown): unknown {
    const typed = asStorageError(addressOf(this.#place.url), error)
    if (typed instanceof StorageError && typed !== error) this.#failure = typed
    return typed
  }

  async problem(): Promise<StorageError | undefined> {
    if (this.#failure === undefined) return undefined
    try {
      await this.#probe()
      this.#failure = undefined
    } catch (error) {
      this.typed(error)
    }
    return this.#failure
  }
}

/** Without what signs in. */
function addressOf(url: string): string {
  const { host, port, database = '' } = new pg.Client(url)
  return `PostgreSQL at ${host}:${port}/${database}`
}

/** What says that there is no server to talk to, beside class 08 of its own codes. */
const UNREACHABLE = /^(ECONN|ENOTFOUND|ENOENT|EHOSTUN|ENETUN|ETIMEDOUT|EPIPE|57P0|53300|25006)/

/**
 * What pg threw, as a `StorageError` where it concerns the database and not a statement of ours.
 * Codes: appendix A of PostgreSQL's manual.
 */
function asStorageError(where: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StorageError) return error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const storageError = (ours: StorageErrorCode, words: string): StorageError =>
    new StorageError(ours, `${where}: ${words} (${messageOf(error)}).`, { cause: error })
  if (code === '53100') return storageError('full', 'there is no space left on its disk; make room')
  if (code === '58030') return storageError('io', 'its disk refused a read or a write')
  if (code.startsWith('XX0')) return storageError('corrupt', 'it is damaged; restore it from a backup')
  if (code.startsWith('28') || code === '3D000')
    return storageError('cannot_open', 'it refuses DATABASE_URL; correct name, password or database')
  if (
    code.startsWith('08') ||
    UNREACHABLE.test(code) ||
    /^(Connection terminated|timeout exceeded)/.test(error.message)
  )
    return storageError('io', 'it cannot be reached')
  return error
}
