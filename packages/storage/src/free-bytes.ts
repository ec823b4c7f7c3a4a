/** Free space of the disk under a folder, as an unprivileged process may use it. */
import { statSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'

/** Microseconds: it is asked before each write of an output. Throws what the file system throws. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/**
 * Free space for a database: what its write-ahead log holds is still to be moved into its file, and
 * needs the space again.
 */
export function freeBytesFor(database: string): number {
  return freeBytes(dirname(database)) - logBytes(database)
}

/** Of a database's write-ahead log. */
export function logBytes(database: string): number {
  return statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0
}
