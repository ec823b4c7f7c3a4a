/**
 * One commit for all writes that wait. A commit waits for the disk, and the whole process with it; when two hundred
 * sessions write at once, one wait serves all of them.
 */
import { setImmediate as afterThis } from 'node:timers/promises'
import type { Kysely, Transaction } from 'kysely'

/** Writes in one transaction. The process does nothing else meanwhile, so a long row of them is written in pieces. */
const MOST_WRITES = 64

interface Waiting<Schema> {
  write: (trx: Transaction<Schema>) => Promise<() => void>
  reject: (error: unknown) => void
}

export class GroupCommit<Schema> {
  readonly #db: Kysely<Schema>
  readonly #written: () => void
  #waiting: Waiting<Schema>[] = []
  #writing: Promise<void> | undefined

  /** `written` is called after each commit. */
  constructor(db: Kysely<Schema>, written: () => void) {
    this.#db = db
    this.#written = written
  }

  /**
   * Do `write` in a transaction, in the order of the calls. Resolves once it is on the disk; when it throws, or the disk
   * fails, rejects and leaves nothing, whatever became of the others. It may be called twice, the first time undone: it must
   * do nothing but use `trx`.
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
        // Whatever has come in already, for every session, is read first: it belongs to this group.
        await afterThis()
        await this.#writeGroup(this.#waiting.splice(0, MOST_WRITES))
      }
    } finally {
      this.#writing = undefined
    }
  }

  /** Never rejects. When one of several fails, each gets a transaction of its own: the others did nothing wrong. */
  async #writeGroup(group: readonly Waiting<Schema>[]): Promise<void> {
    try {
      const done = await this.#db.transaction().execute(async (trx) => {
        const all: (() => void)[] = []
        for (const { write } of group) all.push(await write(trx))
        return all
      })
      for (const tell of done) tell()
      this.#written()
    } catch (error) {
      const [first, ...others] = group
      if (others.length === 0) first?.reject(error)
      else for (const one of group) await this.#writeGroup([one])
    }
  }
}
