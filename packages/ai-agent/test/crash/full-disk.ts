/** What a store is on: at its n-th write there is no room, and none later until somebody has made some. */
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { StorageError } from '@sandlot/storage/storage-error'

const WRITES: ReadonlySet<string | symbol> = new Set<keyof SessionStore>([
  'createSession',
  'takeOver',
  'append',
  'appendOutput',
])

export class FullDisk {
  /** Writes that were tried. */
  writes = 0
  /** There was a write that failed. */
  struck = false
  readonly #fullAt: number | undefined
  readonly #recovers: boolean
  #full = false

  /** `fullAt`: from 1; absent: never. `recovers`: only that one write fails, and there is room again. */
  constructor(fullAt?: number, recovers = false) {
    this.#fullAt = fullAt
    this.#recovers = recovers
  }

  /** The store, as long as its writes find room. */
  under(store: SessionStore): SessionStore {
    return new Proxy(store, {
      get: (_target, name) => {
        const value: unknown = Reflect.get(store, name, store)
        if (typeof value !== 'function') return value
        return (...args: unknown[]): unknown =>
          WRITES.has(name) && !this.#hasRoom()
            ? Promise.reject(new StorageError('full', 'There is no space left for the database.'))
            : Reflect.apply(value, store, args)
      },
    })
  }

  /** Do `work`; when the disk was full, make room and do it once more, as a client does that was told so. */
  async through<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!this.struck) throw error
      this.#full = false
      return work()
    }
  }

  #hasRoom(): boolean {
    this.writes += 1
    const now = this.writes === this.#fullAt
    this.struck ||= now
    this.#full ||= now && !this.#recovers
    return !now && !this.#full
  }
}
