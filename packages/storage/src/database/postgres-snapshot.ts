/**
 * A whole PostgreSQL database for backups: a snapshot of one moment, and the check for an empty
 * one.
 */
import { sql } from 'kysely'
import { StorageError } from '../storage-error.ts'
import { MOVING_SCHEMA, connectPostgres, migrationsOf, refuseHalf } from './postgres.ts'
import type { StoreName } from './dialect.ts'

const SCHEMAS: readonly string[] = ['sessions', 'accounts', MOVING_SCHEMA]

interface Snapshot {
  /** For `pg_dump --snapshot`; valid until `close`. */
  id: string
  /** The server's version, like `15.10`. */
  server: string
  /** The moment of the snapshot, in ISO 8601, by the server's clock. */
  at: string
  /** Names of the migrations of each store; empty if it was never opened. */
  migrations: Record<StoreName, string[]>
  close: () => Promise<void>
}

/**
 * Holds a moment of both stores without blocking writers. Throws `StorageError`: cannot_open, io.
 */
export async function holdSnapshot(url: string): Promise<Snapshot> {
  const { db, health, close } = connectPostgres(url)
  try {
    // The pool has one connection: every statement from here on is in this transaction.
    await sql`begin isolation level repeatable read read only`.execute(db)
    const { rows } = await sql<{ id: string; server: string; at: string }>`
      select pg_export_snapshot() as id, current_setting('server_version') as server,
        to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at
    `.execute(db)
    await refuseHalf(db)
    const [row] = rows
    if (row === undefined) throw new StorageError('io', 'PostgreSQL gave no snapshot.')
    const migrations = {
      sessions: await migrationsOf(db, 'sessions'),
      accounts: await migrationsOf(db, 'accounts'),
    }
    return { ...row, server: row.server.replace(/ .*/, ''), migrations, close }
  } catch (error) {
    await close()
    throw health.typed(error)
  }
}

interface BackupLock extends AsyncDisposable {
  /** Aborts when its connection, and with it the lock, is lost; the reason is a `StorageError`. */
  lost: AbortSignal
}

/**
 * The lock for one backup at a time, until it is disposed of or its connection ends; undefined
 * while another process has it. Throws `StorageError`: cannot_open, io.
 */
export async function lockBackups(url: string): Promise<BackupLock | undefined> {
  const lost = new AbortController()
  const { db, health, close } = connectPostgres(url, { onLost: (error) => lost.abort(health.typed(error)) })
  const release = async (): Promise<void> => {
    // The server releases the lock of a closed connection only a moment later.
    if (!lost.signal.aborted) await sql`select pg_advisory_unlock_all()`.execute(db).catch(() => undefined)
    await close()
  }
  try {
    // The server would hold the lock of a connection that the network cut for two hours.
    const { rows } = await sql<{ alone: boolean }>`
      select set_config('tcp_keepalives_idle', '30', false),
        set_config('tcp_keepalives_interval', '10', false),
        set_config('tcp_keepalives_count', '6', false),
        pg_try_advisory_lock(hashtext('sandlot is backed up')) as alone
    `.execute(db)
    if (rows[0]?.alone === true) return { lost: lost.signal, [Symbol.asyncDispose]: release }
    await close()
    return undefined
  } catch (error) {
    await close()
    throw health.typed(error)
  }
}

/** Our schemas, and the server's version. Throws `StorageError`: cannot_open, io. */
export async function inspectPostgres(url: string): Promise<{ server: string; schemas: string[] }> {
  const { db, health, close } = connectPostgres(url)
  try {
    const { rows } = await sql<{ server: string; schemas: string[] }>`
      select split_part(current_setting('server_version'), ' ', 1) as server,
        array(select nspname::text from pg_namespace where nspname in (${sql.join(SCHEMAS)})) as schemas
    `.execute(db)
    return rows[0] ?? { server: '', schemas: [] }
  } catch (error) {
    throw health.typed(error)
  } finally {
    await close()
  }
}
