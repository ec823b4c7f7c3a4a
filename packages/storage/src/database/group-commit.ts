/**
 * Joins all waiting writes into one commit: two hundred sessions that write at once share one wait
 * for the disk.
 */
import { setImmediate as afterThis } from 'node:timers/promises'
import { type Kysely, type Transaction, sql } from 'kysely'
import { isOutage } from '../storage-error.ts'
import { dialectOf } from './dialect.ts'

/** Writes in one transaction. Reads of the database wait for it, so a long queue is split. */
const MOST_WRITES = 64
/** Milliseconds of writes in SQLite, which block the process, until other work may run. */
const LONGEST_HOLD_MS = 2

/** Settles the promise of one write. */
type Settle = () => void

interface Waiting<Schema> {
  write: (trx: Transaction<Schema>) => Promise<Settle>
  reject: (error: unknown) => void
}

type Transact<Schema> = <T>(work: (trx: Transaction<Schema>) => Promise<T>) => Promise<T>

export class GroupCommit<Schema> {
  readonly #transact: Transact<Schema>
  readonly #written: () => void
  #waiting: Waiting<Schema>[] = []
  #writing: Promise<void> | undefined

  /**
   * `written` is called after each commit; must not throw. `transact` replaces the transaction of
   * `db`.
   */
  constructor(
    db: Kysely<Schema>,
    written: () => void,
    transact: Transact<Schema> = (work) => db.transaction().execute(work),
  ) {
    this.#transact = transact
    this.#written = written
  }

  /**
   * Runs `write` in a transaction, in the order of the calls. Resolves once it is on the disk;
   * rejects when it throws or the disk fails, and then leaves nothing, independent of the others.
   * `write` may be called twice, the first time rolled back: it must only use `trx`, and begin no
   * transaction in it.
   */
  run<T>(write: (trx: Transaction<Schema>) => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#waiting.push({
      reject,
      write: async (trx) => {
        const result = await write(trx)
        return () => resolve(result)
      },
    })
    this.#writing ??= this.#writeAll()
    return promise
  }

  /** Resolves when nothing waits. */
  async idle(): Promise<void> {
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        // Received requests of all sessions are read first: they belong to this group.
        await afterThis()
        await this.#writeGroup(this.#waiting.splice(0, MOST_WRITES))
      }
    } finally {
      this.#writing = undefined
    }
  }

  /** Never rejects. */
  async #writeGroup(group: readonly Waiting<Schema>[]): Promise<void> {
    const done = await this.#commit(group)
    for (const settle of done) settle()
    if (done.length > 0) this.#written()
  }

  /**
   * Functions that settle the committed writes. When the disk fails a group, each write is retried
   * in its own transaction.
   */
  async #commit(group: readonly Waiting<Schema>[]): Promise<Settle[]> {
    try {
      return await this.#transact((trx) => writeEach(trx, group))
    } catch (error) {
      const [first, ...others] = group
      // A retry cannot reach an unreachable database either.
      if (isOutage(error)) for (const one of group) one.reject(error)
      else if (others.length === 0) first?.reject(error)
      else for (const one of group) await this.#writeGroup([one])
      return []
    }
  }
}

/**
 * A throwing write is rolled back, and rejected only after the commit: it may conflict with a write
 * of the same group.
 */
async function writeEach<Schema>(
  trx: Transaction<Schema>,
  group: readonly Waiting<Schema>[],
): Promise<Settle[]> {
  const [first, ...others] = group
  // The transaction itself rolls back a single one.
  if (first !== undefined && others.length === 0) return [await first.write(trx)]
  const done: Settle[] = []
  const blocks = dialectOf(trx) === 'sqlite'
  let since = performance.now()
  for (const { write, reject } of group) {
    if (blocks && performance.now() - since > LONGEST_HOLD_MS) {
      await afterThis()
      since = performance.now()
    }
    await sql`savepoint one_write`.execute(trx)
    try {
      done.push(await write(trx))
    } catch (error) {
      // Throws if the database has ended the whole transaction, like SQLite on a full disk.
      await sql`rollback to savepoint one_write`.execute(trx)
      done.push(() => reject(error))
    }
    await sql`release savepoint one_write`.execute(trx)
  }
  return done
}
