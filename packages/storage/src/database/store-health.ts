/**
 * Health of a database file: derived from its failures and its disk, so that a check costs almost
 * nothing.
 */
import { dirname } from 'node:path'
import { freeBytes } from './free-bytes.ts'
import { asStorageError } from './sqlite-file.ts'
import { StorageError } from '../storage-error.ts'

/** With less free space a test write is required. */
const LOW_BYTES = 8 * 1024 * 1024

/** Health of a database. */
export interface Health {
  /** A `StorageError` for a failure of the database as a whole; any other error unchanged. */
  typed(error: unknown): unknown
  /** Undefined: it is writable. */
  problem(): StorageError | undefined | Promise<StorageError | undefined>
}

export class StoreHealth implements Health {
  readonly #path: string
  readonly #probe: () => void
  readonly #mayProbe: () => boolean
  #failure: StorageError | undefined

  /**
   * `probe` writes to the database, and throws SQLite's errors. `mayProbe`: false in a transaction,
   * in which it would say nothing about the disk.
   */
  constructor(path: string, probe: () => void, mayProbe: () => boolean = () => true) {
    this.#path = path
    this.#probe = probe
    this.#mayProbe = mayProbe
  }

  /** See `asStorageError`. A failure of the file or its disk is remembered. */
  typed(error: unknown): unknown {
    const typed = asStorageError(this.#path, error)
    if (typed !== error && typed instanceof StorageError && typed.code !== 'locked') this.#failure = typed
    return typed
  }

  /**
   * Undefined: it is writable. A failure ends with a successful write; damage stays until the next
   * start.
   */
  problem(): StorageError | undefined {
    if (this.#failure?.code === 'corrupt') return this.#failure
    const isLow = freeBytes(dirname(this.#path)) < LOW_BYTES
    if (this.#failure === undefined && !isLow) return undefined
    // A small write may still fit when the next message does not.
    if (this.#failure?.code === 'full' && isLow) return this.#failure
    if (!this.#mayProbe()) return this.#failure
    try {
      this.#probe()
      this.#failure = undefined
    } catch (error) {
      const typed = this.typed(error)
      if (!(typed instanceof StorageError)) throw typed
      // Another process's lock is no disk failure.
      return typed.code === 'locked' ? this.#failure : typed
    }
    return undefined
  }
}
