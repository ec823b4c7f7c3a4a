/**
 * An exclusive lock between processes, by path. It is advisory and ends with its process: a
 * remaining file locks nothing. (It is SQLite's own lock on an otherwise empty database: a POSIX
 * lock, without another native addon. Do not open the file by other means in the process that holds
 * it; closing any handle would drop the lock.)
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openSqliteLock } from './sqlite-file.ts'
import { StorageError } from '../storage-error.ts'

export interface FileLock {
  readonly path: string
  /** Idempotent. The file stays. */
  release(): void
}

/**
 * Takes the lock; undefined when another holder (this process included) has it. Throws
 * `StorageError('cannot_open')` when the path cannot be used.
 */
export function lockFile(path: string): FileLock | undefined {
  const file = openSqliteLock(path)
  return file === undefined ? undefined : { path, release: () => void file.close() }
}

/** Like `lockFile`, but waits up to `waitMs`; then throws `StorageError('locked')`. */
export async function waitForLock(path: string, waitMs: number): Promise<FileLock> {
  const until = performance.now() + waitMs
  for (;;) {
    const lock = lockFile(path)
    if (lock !== undefined) return lock
    if (performance.now() >= until) {
      throw new StorageError(
        'locked',
        `Another process holds ${path} since ${waitMs} ms. Stop it, or try again later.`,
      )
    }
    await sleep(50)
  }
}
