/**
 * Moves what was written from SQLite's write-ahead log into its file while nobody writes. SQLite would do it by itself in
 * the middle of some commit, and that session's prompt would wait for it.
 */
import { type Kysely, sql } from 'kysely'

/** Nobody has written for so long, in milliseconds. */
const REST_MS = 300
/** So few writes are not worth it. */
const FEW_WRITES = 50
/** Pages of the log (4 KiB each) at which it is done all the same, where writers never rest. SQLite's own number is 1,000. */
const MOST_PAGES = 8_000

export class Checkpoints<Schema> {
  readonly #db: Kysely<Schema>
  #writes = 0
  #timer: NodeJS.Timeout | undefined

  private constructor(db: Kysely<Schema>) {
    this.#db = db
  }

  static async start<Schema>(db: Kysely<Schema>): Promise<Checkpoints<Schema>> {
    await sql`pragma wal_autocheckpoint = ${sql.lit(MOST_PAGES)}`.execute(db)
    return new Checkpoints(db)
  }

  /** Something was written. */
  written(): void {
    if (++this.#writes < FEW_WRITES) return
    if (this.#timer === undefined) this.#timer = setTimeout(() => void this.#move(), REST_MS).unref()
    else this.#timer.refresh()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  /** Never rejects: what could not be moved now stays in the log, where it is as safe, and is moved later. */
  async #move(): Promise<void> {
    this.#writes = 0
    this.#timer = undefined
    await Promise.allSettled([sql`pragma wal_checkpoint(passive)`.execute(this.#db)])
  }
}
