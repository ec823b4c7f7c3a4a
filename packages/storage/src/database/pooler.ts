/** Supports session pooling of PostgreSQL, and refuses transaction pooling. */
import { randomText } from '@sandlot/shared/base/ids'
import { type Kysely, sql } from 'kysely'
import { StorageError } from '../storage-error.ts'
import type { StoreName } from './dialect.ts'

const MARK_CHARS = 20

interface SessionSettings {
  /** The schema of unqualified table names. */
  schema: StoreName
  /** Milliseconds, 0: no limit. Absent: the server's default. */
  statementMs?: number
  idleInTransactionMs?: number
}

/**
 * Sets them by a statement, because poolers refuse them as connection parameters. A pool of pg
 * awaits the returned function.
 */
export function beginSession({
  schema,
  statementMs,
  idleInTransactionMs,
}: SessionSettings): (client: { query(statement: string): Promise<unknown> }) => unknown {
  const settings = Object.entries({
    search_path: schema,
    statement_timeout: statementMs,
    idle_in_transaction_session_timeout: idleInTransactionMs,
  }).flatMap(([name, value]) => (value === undefined ? [] : [`set_config('${name}', '${value}', false)`]))
  return (client) => client.query(`select ${settings.join(', ')}`)
}

/**
 * Throws `cannot_open` if statements of one connection reach several sessions: locks and
 * notifications belong to one. `db`: at least two connections. `where`: its address.
 */
export async function refusePooledByTransaction(db: Kysely<unknown>, where: string): Promise<void> {
  const mark = randomText(MARK_CHARS)
  const seenBy = async (of: Kysely<unknown>): Promise<string | null> => {
    const { rows } = await sql<{ mark: string | null }>`
      select current_setting('sandlot.session', true) as mark
    `.execute(of)
    return rows[0]?.mark ?? null
  }
  await db.connection().execute(async (first) => {
    await sql`select set_config('sandlot.session', ${mark}, false)`.execute(first)
    // The first check detects alternating servers, the second the most recently used one.
    const own = [await seenBy(first)]
    const others = await db.connection().execute(seenBy)
    own.push(await seenBy(first))
    if (own.every((seen) => seen === mark) && others !== mark) return
    throw new StorageError(
      'cannot_open',
      `${where}: a pooler in between must work by session, and this one works by transaction. Set pool_mode = session there, or name PostgreSQL itself in DATABASE_URL.`,
    )
  })
}
