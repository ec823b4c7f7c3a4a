/**
 * The only file that imports pg: opens PostgreSQL through Kysely. Each store has a schema of its
 * own, so that both may share one database.
 */
import { Socket } from 'node:net'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { OLDEST_POSTGRES } from '@sandlot/shared/config/postgres-version'
import { SandlotError, messageOf, hasCode } from '@sandlot/shared/base/errors'
import {
  HandleEmptyInListsPlugin,
  Kysely,
  PostgresDialect,
  replaceWithNoncontingentExpression,
  sql,
} from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import pg from 'pg'
import { StorageError, type StorageErrorCode } from '../storage-error.ts'
import type { Migrations, OpenDatabase } from './database.ts'
import type { StoreName } from './dialect.ts'
import { PatientDialect, RepeatingKysely } from './postgres-driver.ts'
import { beginSession, refusePooledByTransaction } from './pooler.ts'
import type { Health } from './store-health.ts'

/** Connections per process. */
const MOST_CONNECTIONS = 10
/** Milliseconds. */
const CONNECT_MS = 10_000
const STATEMENT_MS = 30_000
/** A process with a cut network must not block another one from continuing a user's sessions. */
const IDLE_IN_TRANSACTION_MS = 5_000
/** Silence before the first keepalive: networks forget a connection that is silent for minutes. */
const KEEPALIVE_MS = 30_000
/** Longer than any statement: the network does not always report that it was cut. */
const SILENT_MS = STATEMENT_MS + 5_000

/** `bigint`, and sums of it. */
const NUMBERS: readonly number[] = [pg.types.builtins.INT8, pg.types.builtins.NUMERIC]

/**
 * The process's name in `pg_stat_activity`, unless the address has another one. PostgreSQL
 * truncates longer names.
 */
export const PROCESS_NAME = `sandlot ${/packages[/\\]([^/\\]+)/.exec(process.argv[1] ?? '')?.[1] ?? 'tool'} ${process.pid}@${hostname()}`

interface PostgresSchema {
  /** `postgres://…` */
  url: string
  /** The schema of the store's tables. */
  schema: StoreName
}

/** Exists while a Sandlot is being moved into the database. */
export const MOVING_SCHEMA = 'sandlot_moving'

/**
 * Opens and migrates it. Of several concurrent processes one migrates, and the others wait. Throws
 * `StorageError`: cannot_open (also while another is moved into it), newer_schema,
 * migration_failed.
 */
export async function openPostgres<Schema>(
  at: PostgresSchema,
  migrations: Migrations,
  by: 'moving' | 'sandlot' = 'sandlot',
): Promise<OpenDatabase<Schema>> {
  const health = new PostgresHealth(at)
  const onConnect = beginSession({
    schema: at.schema,
    statementMs: STATEMENT_MS,
    idleInTransactionMs: IDLE_IN_TRANSACTION_MS,
  })
  const config = { onConnect, max: MOST_CONNECTIONS, stream: () => impatientSocket(SILENT_MS) }
  const pool = poolOf(at.url, config, (error) => health.typed(error))
  const db = new RepeatingKysely<Schema>({
    dialect: new PatientDialect({ pool }, at.schema === 'accounts'),
    // SQLite accepts an empty list.
    plugins: [new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression })],
  })
  health.watch(db)
  try {
    await migrate(at, health, migrations, by)
    return { db, health, close: () => db.destroy() }
  } catch (error) {
    await db.destroy()
    throw health.typed(error)
  }
}

/**
 * Few connections without a store's migrations, for work on the database as a whole; statements and
 * transactions have no time-out. `schema`: of unqualified table names.
 */
export function connectPostgres(
  url: string,
  {
    schema = 'sessions',
    connections = 1,
    health = new PostgresHealth({ url, schema }),
    onLost = (error) => health.typed(error),
  }: {
    schema?: StoreName
    connections?: number
    health?: PostgresHealth
    onLost?: (error: Error) => unknown
  } = {},
): OpenDatabase<unknown> {
  const onConnect = beginSession({ schema, statementMs: 0, idleInTransactionMs: 0 })
  const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: KEEPALIVE_MS }
  const config = { onConnect, max: connections, idleTimeoutMillis: 0, ...keepAlive }
  const pool = poolOf(url, config, onLost)
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  return { db, health, close: () => db.destroy() }
}

function poolOf(url: string, config: pg.PoolConfig, onLost: (error: Error) => unknown): pg.Pool {
  const pool = new pg.Pool({ ...clientConfig(url), ...config })
  // An idle connection was lost; the next statement opens another.
  pool.on('error', onLost)
  // A loss between two statements of a transaction would end the process.
  pool.on('connect', (client) => client.on('error', onLost))
  return pool
}

function clientConfig(connectionString: string): pg.ClientConfig {
  return {
    connectionString,
    fallback_application_name: PROCESS_NAME,
    connectionTimeoutMillis: CONNECT_MS,
    types: { getTypeParser },
  }
}

/** Milliseconds. */
const HEARTBEAT_MS = 2_500

/**
 * One connection for a heartbeat: a statement without a quick answer is a missed beat. `name`: of
 * the process, which a thread does not know.
 */
export function heartbeatConnection<Schema>(at: PostgresSchema, name: string): OpenDatabase<Schema> {
  const config = {
    fallback_application_name: name,
    onConnect: beginSession({ schema: at.schema, statementMs: HEARTBEAT_MS }),
    max: 1,
    connectionTimeoutMillis: HEARTBEAT_MS,
    query_timeout: HEARTBEAT_MS,
    idleTimeoutMillis: 0,
  }
  // The next beat fails by itself.
  const pool = poolOf(at.url, config, () => undefined)
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
  return { db, health: new PostgresHealth(at), close: () => db.destroy() }
}

/** Milliseconds without an answer after which a connection counts as lost. */
const LISTENING_QUERY_MS = 10_000

/** A dedicated connection for notifications and for locks of the same lifetime. */
export type ListeningClient = pg.Client

/** Throws pg's errors. */
export async function connectListener({ url, schema }: PostgresSchema): Promise<ListeningClient> {
  const config = { query_timeout: LISTENING_QUERY_MS, keepAlive: true }
  const client = new pg.Client({ ...clientConfig(url), ...config })
  try {
    await client.connect()
    await beginSession({ schema })(client)
    await client.query(`listen sandlot_${schema}`)
    return client
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
}

/** Destroys a connection after so much silence. */
function impatientSocket(ms: number): Socket {
  const socket = new Socket()
  return socket.setTimeout(ms, () => socket.destroy(new Error('Connection terminated: it was silent.')))
}

/** Our numbers are whole and below 2^53. */
const getTypeParser: pg.CustomTypesConfig['getTypeParser'] = (type, format) =>
  NUMBERS.includes(type) ? Number : pg.types.getTypeParser(type, format)

/** On separate connections without a statement time-out: one may wait for another process. */
async function migrate(
  { url, schema }: PostgresSchema,
  health: PostgresHealth,
  migrations: Migrations,
  by: 'moving' | 'sandlot',
): Promise<void> {
  const { db, close } = connectPostgres(url, { schema, connections: 2, health })
  try {
    await refuseOld(url, db)
    await refusePooledByTransaction(db, addressOf(url))
    if (by === 'sandlot') await refuseHalf(db)
    if (await isMigrated(db, schema, migrations)) return
    await db.connection().execute(async (connection) => {
      // Concurrent creation of a schema or of the migrator's own tables fails.
      await sql`select pg_advisory_lock(hashtext(${`sandlot ${schema} migrates`}))`.execute(connection)
      try {
        if (!(await isMigrated(db, schema, migrations))) await migrateAlone(db, schema, migrations)
      } finally {
        await sql`select pg_advisory_unlock_all()`.execute(connection)
      }
    })
  } finally {
    await close()
  }
}

async function refuseOld(url: string, db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{
    version: string
  }>`select current_setting('server_version') as version`.execute(db)
  const version = rows[0]?.version ?? ''
  if (Number.parseInt(version, 10) >= OLDEST_POSTGRES) return
  throw new StorageError(
    'cannot_open',
    `${addressOf(url)}: its version is ${version}; Sandlot needs ${OLDEST_POSTGRES} or a later one.`,
  )
}

/** Throws `StorageError('cannot_open')` while a Sandlot is being moved into the database. */
export async function refuseHalf(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ is_half: boolean }>`
    select to_regnamespace(${MOVING_SCHEMA}) is not null as is_half
  `.execute(db)
  if (rows[0]?.is_half !== true) return
  throw new StorageError(
    'cannot_open',
    'The database holds a part of a Sandlot: ./sandlot migrate has not ended yet. Run it again with the same files, or use another database.',
  )
}

/** Names of a store's applied migrations; none if it was never opened. */
export async function migrationsOf(db: Kysely<unknown>, schema: StoreName): Promise<string[]> {
  const name = `${schema}.kysely_migration`
  const table = await sql<{ there: boolean }>`select to_regclass(${name}) is not null as there`.execute(db)
  if (table.rows[0]?.there !== true) return []
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(name)} order by name`.execute(db)
  return rows.map((row) => row.name)
}

/**
 * True if all of these are applied. Additions of a later version are no obstacle, unless their name
 * says so. Throws `StorageError('newer_schema')`.
 */
async function isMigrated(db: Kysely<unknown>, schema: StoreName, migrations: Migrations): Promise<boolean> {
  const applied = await migrationsOf(db, schema)
  const missing = Object.keys(migrations).filter((name) => !applied.includes(name))
  const unknown = applied.filter((name) => !Object.hasOwn(migrations, name))
  const unfit = missing.length > 0 ? unknown : unknown.filter((name) => !isFitFor(name, migrations))
  if (unfit.length === 0) return missing.length === 0
  throw new StorageError(
    'newer_schema',
    `The database was written by a newer version of Sandlot, which this one cannot work beside (it has ${unfit.join(', ')}). Run that version, or restore a backup of before.`,
  )
}

/** `060_without_it_after_055`: only for versions with 055; earlier ones use what it removes. */
function isFitFor(later: string, migrations: Migrations): boolean {
  const needed = /_after_(\d+)$/.exec(later)?.[1]
  return needed === undefined || Object.keys(migrations).some((name) => name.startsWith(`${needed}_`))
}

/** Milliseconds for which a migration, and everything queued after it, waits for a table. */
const LOCK_MS = 1_000
const BETWEEN_LOCKS_MS = 2_000
const MOST_LOCK_TRIES = 20
const LOCK_NOT_AVAILABLE = '55P03'

async function migrateAlone(db: Kysely<unknown>, schema: StoreName, migrations: Migrations): Promise<void> {
  await sql`create schema if not exists ${sql.id(schema)}`.execute(db)
  const migrator = new Migrator({
    db,
    provider: { getMigrations: () => Promise.resolve(impatient(migrations)) },
    migrationTableSchema: schema,
  })
  for (let tries = 1; ; tries += 1) {
    const { error, results } = await migrator.migrateToLatest()
    if (error === undefined) return
    const isLocked = hasCode(error, LOCK_NOT_AVAILABLE)
    if (isLocked && tries < MOST_LOCK_TRIES) {
      await sleep(BETWEEN_LOCKS_MS)
      continue
    }
    const failed = results?.find((result) => result.status === 'Error')?.migrationName ?? 'a migration'
    const hint = isLocked ? ' Another transaction uses its tables, like a backup: start again after it.' : ''
    throw new StorageError(
      'migration_failed',
      `The database is unchanged: ${failed} failed: ${messageOf(error)}.${hint}`,
      { cause: error },
    )
  }
}

/**
 * Time-out for tables in use: a waiting migration blocks all later users of the table, including
 * the previous version.
 */
function impatient(migrations: Migrations): Record<string, Migration> {
  return Object.fromEntries(
    Object.entries(migrations).map(([name, migration]) => [
      name,
      {
        async up(trx: Kysely<unknown>) {
          await sql`set local lock_timeout = ${sql.lit(LOCK_MS)}`.execute(trx)
          await migration(trx)
        },
      },
    ]),
  )
}

/** Failures are remembered until a successful statement disproves them. */
class PostgresHealth implements Health {
  readonly #at: PostgresSchema
  #failure: StorageError | undefined
  #probe: (of: StorageErrorCode) => Promise<unknown> = () => Promise.resolve()

  constructor(at: PostgresSchema) {
    this.#at = at
  }

  watch<Schema>(db: Kysely<Schema>): void {
    // Reads succeed on a full disk: only a new page of a table proves that there is space.
    this.#probe = (of) =>
      (of === 'full'
        ? sql`create temporary table sandlot_probe on commit drop as select 1`
        : sql`select 1`
      ).execute(db)
  }

  typed(error: unknown): unknown {
    const typed = asStorageError(addressOf(this.#at.url), error)
    if (typed instanceof StorageError && typed !== error) this.#failure = typed
    return typed
  }

  async problem(): Promise<StorageError | undefined> {
    if (this.#failure === undefined) return undefined
    try {
      await this.#probe(this.#failure.code)
      this.#failure = undefined
    } catch (error) {
      this.typed(error)
    }
    return this.#failure
  }
}

/** Without credentials. */
export function addressOf(url: string): string {
  const { host, port, database = '' } = new pg.Client(url)
  return `PostgreSQL at ${host}:${port}/${database}`
}

/** Codes of an unreachable server, in addition to class 08 of PostgreSQL's own. */
const UNREACHABLE = /^(ECONN|ENOTFOUND|ENOENT|EHOSTUN|ENETUN|ETIMEDOUT|EPIPE|57P0|25006|25P03)/

/** Data exceptions, like a number out of range, and values too long for an index. */
const UNFIT = /^(22|54000)/

/** pg's message for a server without TLS. */
const NO_TLS = 'The server does not support SSL connections'
const UNTRUSTED = /CERT|UNABLE_TO_VERIFY/

/**
 * pg's errors, as a `StorageError` if they concern the database and not a statement of ours. Codes:
 * appendix A of PostgreSQL's manual.
 */
function asStorageError(where: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StorageError) return error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const storageError = (ours: StorageErrorCode, words: string): StorageError =>
    new StorageError(ours, `${where}: ${words} (${messageOf(error)}).`, { cause: error })
  if (UNFIT.test(code))
    return new SandlotError('bad_request', `The database cannot hold a value of this request (${code}).`, {
      cause: error,
    })
  if (code === '53100') return storageError('full', 'there is no space left on its disk; make room')
  if (code === '58030') return storageError('io', 'its disk refused a read or a write')
  if (code.startsWith('XX0')) return storageError('corrupt', 'it is damaged; restore it from a backup')
  if (code === '53300' || error.message.startsWith('timeout exceeded when trying to connect'))
    return storageError(
      'unreachable',
      'all its connections are in use; try again, or raise its max_connections',
    )
  if (code.startsWith('28') || code === '3D000')
    return storageError('cannot_open', 'it refuses DATABASE_URL; correct name, password or database')
  if (code === '42501')
    return storageError(
      'cannot_open',
      'its role lacks a right; make it the owner of the database (alter database … owner to …)',
    )
  if (error.message === NO_TLS)
    return storageError(
      'cannot_open',
      'it has no TLS; turn that on there, or take sslmode out of DATABASE_URL',
    )
  if (UNTRUSTED.test(code))
    return storageError(
      'cannot_open',
      'its certificate is not trusted; name the authority’s in DATABASE_URL (sslrootcert=/path/ca.crt)',
    )
  if (
    code.startsWith('08') ||
    UNREACHABLE.test(code) ||
    /^(Connection terminated|Client has encountered a connection error)/.test(error.message)
  )
    return storageError(
      'unreachable',
      'it cannot be reached; see whether it runs, and host and port in DATABASE_URL',
    )
  return error
}
