/**
 * Syncs an SQLite write-ahead log to the disk without blocking the event loop. SQLite commits with
 * `synchronous = NORMAL`, which writes the log's frames and leaves this sync to us.
 *
 * The file at `<path>-wal` stays the same while a connection is open: every connection holds a
 * shared lock on the database, and only a holder of the exclusive lock removes the log. SQLite
 * itself syncs the folder and the header of a new or restarted log, and syncs the log before a
 * checkpoint copies its pages.
 */
import { closeSync, existsSync, fdatasync, openSync } from 'node:fs'
import { messageOf } from '@sandlot/shared/base/errors'
import { StorageError } from '../storage-error.ts'

export class WalSync {
  readonly #path: string
  /** Closing it releases no lock: SQLite keeps its locks on the other two files. */
  #descriptor: number | undefined
  #running: Promise<unknown> = Promise.resolve()
  #failure: StorageError | undefined

  /** `path`: of a database that a connection has opened. Throws what the file system throws. */
  constructor(path: string) {
    this.#path = path
    this.#open()
  }

  /** The first failed sync. */
  get failure(): StorageError | undefined {
    return this.#failure
  }

  /**
   * Resolves when everything written to the log before this call is on the disk; at once without a
   * log, as of a restored file that a reader opens first. Call it for one at a time, while a
   * connection is open. Rejects with `StorageError('io')`, and then always: the kernel may have
   * dropped the pages, and may report a later sync as successful.
   */
  async sync(): Promise<void> {
    try {
      await (this.#running = this.#fdatasync())
    } catch (error) {
      this.#failure ??= new StorageError(
        'io',
        `${this.#path}: its disk did not confirm a write (${messageOf(error)}). Check the disk, then restart this process.`,
        { cause: error },
      )
    }
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Waits for a running sync: its descriptor must not become another file's. */
  async close(): Promise<void> {
    await Promise.allSettled([this.#running])
    const descriptor = this.#descriptor
    this.#descriptor = undefined
    if (descriptor !== undefined) closeSync(descriptor)
  }

  #open(): number | undefined {
    const log = `${this.#path}-wal`
    return (this.#descriptor ??= existsSync(log) ? openSync(log, 'r') : undefined)
  }

  async #fdatasync(): Promise<void> {
    const descriptor = this.#open()
    if (descriptor === undefined) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    fdatasync(descriptor, (error) => (error === null ? resolve() : reject(error)))
    await promise
  }
}
