/**
 * PostgreSQL transactions with a known result, also if the connection was lost before COMMIT was
 * answered. Each writes its number into its writer's row in the table `commits`; after a loss the
 * row contains the last committed number.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, type Transaction, isAbortedTransactionError, sql } from 'kysely'
import type { Health } from './store-health.ts'

/** Milliseconds between two attempts to read it. */
const PAUSE_MS = 250
/** For rows of writers that ended without removing theirs. */
const RETAINED_DAYS = 7

export class KnownCommits<Schema> {
  readonly #db: Kysely<Schema>
  readonly #health: Pick<Health, 'typed'>
  readonly #writer = randomUUID()
  readonly #closing = new AbortController()
  #number = 0

  constructor(db: Kysely<Schema>, health: Pick<Health, 'typed'>) {
    this.#db = db
    this.#health = health
  }

  /**
   * Runs `work` in a transaction; call it for one at a time. Rejects when it is certainly not
   * stored. If that is unknown, it waits until the database answers, or until `stopWaiting`.
   */
  async run<T>(work: (trx: Transaction<Schema>) => Promise<T>): Promise<T> {
    const number = ++this.#number
    let ready: { result: T; transaction: string | undefined } | undefined
    try {
      return await this.#db.transaction().execute(async (trx) => {
        ready = undefined
        const result = await work(trx)
        const { rows } = await sql<{ transaction: string }>`
          insert into commits (writer, number) values (${this.#writer}, ${number})
          on conflict (writer) do update set number = excluded.number, at = excluded.at
          returning pg_current_xact_id()::xid::text as transaction
        `.execute(trx)
        ready = { result, transaction: rows[0]?.transaction }
        return result
      })
    } catch (error) {
      const lost = this.#health.typed(error)
      if (ready === undefined || isAnswer(error)) throw lost
      if (await this.#isStored(number, ready.transaction, lost)) return ready.result
      throw lost
    }
  }

  /** Stops waiting for an unreachable database. */
  stopWaiting(): void {
    this.#closing.abort()
  }

  /** Call it when nothing is running. */
  async close(): Promise<void> {
    const removed = sql`
      delete from commits
      where writer = ${this.#writer} or at < now() - make_interval(days => ${sql.lit(RETAINED_DAYS)})
    `
    await Promise.allSettled([removed.execute(this.#db)])
  }

  /** Throws `lost` if it is closed before the database answers. */
  async #isStored(number: number, transaction: string | undefined, lost: unknown): Promise<boolean> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        // Its connection may wait for a COMMIT that never comes.
        await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where backend_xid::text = ${transaction ?? ''} and usename = current_user
        `.execute(this.#db)
        // Waits for an unfinished transaction, even if that created the row.
        const { rows } = await sql<{ number: number }>`
          insert into commits (writer, number) values (${this.#writer}, 0)
          on conflict (writer) do update set number = commits.number returning number
        `.execute(this.#db)
        return (rows[0]?.number ?? 0) >= number
      } catch (error) {
        this.#health.typed(error)
      }
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined)
    }
    throw lost
  }
}

/** True for an error of the transaction, reported by the database, as opposed to the connection. */
function isAnswer(error: unknown): boolean {
  if (isAbortedTransactionError(error)) return true
  return error instanceof Error && 'severity' in error && error.severity === 'ERROR'
}

export async function addCommits(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table commits (
      writer text primary key, number bigint not null, at timestamptz not null default now()
    )
  `.execute(db)
}
