/** A disk that fails at its n-th write. */
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { StorageError } from '@sandlot/storage/storage-error'

/** `full`: there is no room for this write, and for none later until somebody has made some. `once`: for this one alone. */
export type DiskFailure = 'full' | 'once'

export class FailingDisk {
  /** Writes that were tried. */
  writes = 0
  /** There was a write that failed. */
  struck = false
  readonly #at: number | undefined
  readonly #failure: DiskFailure
  #full = false

  /** `at`: from 1; absent: never. */
  constructor(failure: DiskFailure = 'full', at?: number) {
    this.#failure = failure
    this.#at = at
  }

  /** The store, as long as its writes succeed. */
  under(store: SessionStore): SessionStore {
    const { sessions, log, outputs } = store
    return {
      ...store,
      sessions: { ...sessions, create: (...args) => this.#write(() => sessions.create(...args)) },
      log: {
        ...log,
        takeOver: (...args) => this.#write(() => log.takeOver(...args)),
        append: (...args) => this.#write(() => log.append(...args)),
      },
      outputs: { ...outputs, append: (...args) => this.#write(() => outputs.append(...args)) },
    }
  }

  /**
   * Does `work`; when the disk has failed, mends it and repeats the work, as a client does after
   * the error.
   */
  async through<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!this.struck) throw error
      this.#full = false
      return work()
    }
  }

  async #write<T>(work: () => Promise<T>): Promise<T> {
    this.writes += 1
    const now = this.writes === this.#at
    this.struck ||= now
    this.#full ||= now && this.#failure === 'full'
    if (!now && !this.#full) return work()
    throw new StorageError('full', 'There is no space left for the database.')
  }
}
