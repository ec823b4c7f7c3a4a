/**
 * The change feed between processes on one database: numbered rows in the table `changes`, read by
 * cursor. NOTIFY only wakes the readers, which poll every three seconds anyway. A file has one
 * writing process: nothing is recorded there, and listeners never fire.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, type Transaction, sql } from 'kysely'
import { dialectOf, type StoreName, isPostgres } from './dialect.ts'
import { type ListeningClient, connectListener } from './postgres.ts'

/** `what` is `everything` if some may have been missed. */
export interface Change {
  what: string
  id?: string
}

/** Retained rows. */
const MAX_ROWS = 10_000
const POLL_MS = 3_000
const RETRY_MS = 500

/**
 * Records it in the transaction of the change; a no-op on SQLite. Call `wakeListeners` after the
 * commit, except for transactions that store events: those are read at the next poll.
 */
export async function recordChange<S>(trx: Transaction<S>, what: string, id?: string): Promise<void> {
  if (dialectOf(trx) === 'sqlite') return
  // Held until the commit: a reader that has seen a number will never see a smaller one.
  await sql`select pg_advisory_xact_lock(hashtext(current_schema() || ' changes'))`.execute(trx)
  await sql`insert into changes (what, id) values (${what}, ${id ?? null})`.execute(trx)
  await sql`delete from changes where seq <= (select max(seq) from changes) - ${sql.lit(MAX_ROWS)}`.execute(
    trx,
  )
}

/** Makes every listener poll now. Never in a transaction that stores events. */
export async function wakeListeners<S>(db: Kysely<S>): Promise<void> {
  if (dialectOf(db) === 'sqlite') return
  await sql`select pg_notify('sandlot_' || current_schema(), '')`.execute(db)
}

/** Runs `write` and records the change in one transaction. On SQLite only `write`. */
export async function changing<S, T>(
  db: Kysely<S>,
  { what, id }: Change,
  write: (trx: Kysely<S>) => Promise<T>,
): Promise<T> {
  if (dialectOf(db) === 'sqlite') return write(db)
  const result = await db.transaction().execute(async (trx) => {
    const written = await write(trx)
    await recordChange(trx, what, id)
    return written
  })
  await wakeListeners(db)
  return result
}

interface ListenOptions {
  /** The store's path or address. */
  where: string
  schema: StoreName
  /**
   * Receives changes recorded since the start, in order, including those of this process.
   * Rejections go to `problem`, and the same changes are delivered again.
   */
  changed: (changes: readonly Change[]) => void | Promise<void>
  /** Called with each notification, also without a recorded change. */
  woken?: () => void
  /** Name of a lock that one of all listeners holds. Absent: none. */
  leader?: string
  problem: (error: unknown) => void
  /** Milliseconds. */
  pollMs?: number
}

export interface ChangeListener {
  /**
   * True while this listener holds the lock of `leader`: always on SQLite. May be stale for seconds
   * after a lost connection.
   */
  leads(): boolean
  close(): Promise<void>
}

/** Resolves once it listens, and reconnects for ever. Throws if the first connection fails. */
export async function listenToChanges(options: ListenOptions): Promise<ChangeListener> {
  if (!isPostgres(options.where)) return { leads: () => true, close: () => Promise.resolve() }
  const listener = new Listener(options)
  await listener.start()
  return listener
}

class Listener implements ChangeListener {
  readonly #options: ListenOptions
  readonly #closing = new AbortController()
  #cursor = 0
  #leads = false
  #wake = (): void => undefined
  #running: Promise<void> = Promise.resolve()

  constructor(options: ListenOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const client = await this.#connect()
    this.#cursor = (await bounds(client)).high
    await this.#lead(client)
    this.#running = this.#run(client)
  }

  leads(): boolean {
    return this.#leads
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#wake()
    await this.#running
  }

  #connect(): Promise<ListeningClient> {
    const { where, schema } = this.#options
    return connectListener({ url: where, schema })
  }

  /** Never rejects. */
  async #run(first: ListeningClient): Promise<void> {
    let client: ListeningClient | undefined = first
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        client ??= await this.#connect()
        await this.#follow(client)
      } catch (error) {
        if (!signal.aborted) this.#options.problem(error)
      }
      this.#leads = false
      await client?.end().catch(() => undefined)
      client = undefined
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined)
    }
  }

  /** Rejects when the connection breaks; resolves when it closes. */
  async #follow(client: ListeningClient): Promise<void> {
    let broken = false
    let notified = false
    const { pollMs = POLL_MS, woken } = this.#options
    client.on('notification', () => {
      notified = true
      this.#wake()
      woken?.()
    })
    // A pending query rejects by itself; otherwise the next one does.
    client.on('error', () => {
      broken = true
      this.#wake()
    })
    // For notifications missed without a connection.
    woken?.()
    while (!this.#closing.signal.aborted) {
      notified = false
      await this.#lead(client)
      await this.#read(client)
      if (broken || notified) continue
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, pollMs)
      this.#wake = resolve
      if (!this.#closing.signal.aborted) await promise
      clearTimeout(timer)
    }
  }

  async #lead(client: ListeningClient): Promise<void> {
    const { leader } = this.#options
    if (leader === undefined || this.#leads) return
    const { rows } = await client.query<{ got: boolean }>(
      'select pg_try_advisory_lock(hashtext($1)) as got',
      [leader],
    )
    this.#leads = rows[0]?.got === true
  }

  async #read(client: ListeningClient): Promise<void> {
    const { low, high } = await bounds(client)
    if (high === this.#cursor) return
    // Removed before it was read, or a database that has lost its last commits.
    const missed = high < this.#cursor || low > this.#cursor + 1
    const { rows } = missed
      ? { rows: [] }
      : await client.query<{ what: string; id: string | null }>(
          'select what, id from changes where seq > $1 and seq <= $2 order by seq',
          [this.#cursor, high],
        )
    const changes = missed
      ? [{ what: 'everything' }]
      : rows.map(({ what, id }) => (id === null ? { what } : { what, id }))
    try {
      await this.#options.changed(changes)
      this.#cursor = high
    } catch (error) {
      this.#options.problem(error)
    }
  }
}

async function bounds(client: ListeningClient): Promise<{ low: number; high: number }> {
  const { rows } = await client.query<{ low: number; high: number }>(
    'select coalesce(min(seq), 0) as low, coalesce(max(seq), 0) as high from changes',
  )
  return rows[0] ?? { low: 0, high: 0 }
}

export async function addChanges(db: Kysely<unknown>): Promise<void> {
  const isFile = dialectOf(db) === 'sqlite'
  await db.schema
    .createTable('changes')
    .addColumn('seq', isFile ? 'integer' : 'bigint', (column) =>
      isFile ? column.primaryKey() : column.primaryKey().generatedAlwaysAsIdentity(),
    )
    .addColumn('what', 'text', (column) => column.notNull())
    .addColumn('id', 'text')
    .execute()
}
