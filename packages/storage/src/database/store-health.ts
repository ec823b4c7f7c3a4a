/**
 * Whether a database can be written: known from its failures and its disk, so that asking costs
 * almost nothing.
 */
import { dirname } from 'node:path'
import { freeBytes } from './free-bytes.ts'
import { asStorageError } from './sqlite-file.ts'
import { StorageError } from '../storage-error.ts'

/** With less free space than this a write is tried before the database is called sound. */
const LOW_BYTES = 8 * 1024 * 1024

/** What is known of whether a database can be used. */
export interface Health {
  /** What the database threw, as a `StorageError` where it concerns the database as a whole. */
  typed(error: unknown): unknown
  /** Undefined: it can be written. */
  problem(): StorageError | undefined | Promise<StorageError | undefined>
}

export class StoreHealth implements Health {
  readonly #path: string
  readonly #probe: () => void
  #failure: StorageError | undefined

  /** `probe` writes to the database, and throws what SQLite throws. */
  constructor(path: string, probe: () => void) {
    this.#path = path
    this.#probe = probe
  }

  /** What SQLite threw, as `asStorageError`. A failure of the file or its disk is remembered. */
  typed(error: unknown): unknown {
    const typed = asStorageError(this.#path, error)
    if (typed !== error && typed instanceof StorageError && typed.code !== 'locked') this.#failure = typed
    return typed
  }

  /**
   * Undefined: it can be written. A failure is over when a write succeeds again; damage stays until
   * the next start.
   */
  problem(): StorageError | undefined {
    if (this.#failure?.code === 'corrupt') return this.#failure
    const isLow = freeBytes(dirname(this.#path)) < LOW_BYTES
    if (this.#failure === undefined && !isLow) return undefined
    // A small write may still fit where the next message does not.
    if (this.#failure?.code === 'full' && isLow) return this.#failure
    try {
      this.#probe()
      this.#failure = undefined
    } catch (error) {
      const typed = this.typed(error)
      if (!(typed instanceof StorageError)) throw typed
      // Another process's lock is no failure of the disk.
      return typed.code === 'locked' ? this.#failure : typed
    }
    return undefined
  }
}
