/** Free space of the disk under a folder, as an unprivileged process may use it. */
import { statSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { isPostgres } from './dialect.ts'

/** Microseconds: it is asked before each write of an output. Throws what the file system throws. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/**
 * Free space for a database, by path or address: what the write-ahead log of a file holds is still
 * to be moved into it, and needs the space again. PostgreSQL's disk is not seen from here.
 */
export function freeBytesFor(database: string): number {
  if (isPostgres(database)) return Infinity
  return freeBytes(dirname(database)) - logBytes(database)
}

/** Of a database's write-ahead log. */
export function logBytes(database: string): number {
  return statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0
}
