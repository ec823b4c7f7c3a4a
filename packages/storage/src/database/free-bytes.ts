/** Free disk space under a folder for an unprivileged process. */
import { statSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { isPostgres } from './dialect.ts'

/** Takes microseconds: called before each write of an output. Throws the file system's errors. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/**
 * Free space for a database, by path or address, minus the write-ahead log of a file, which needs
 * its space again in the file. PostgreSQL's disk is not visible from here.
 */
export function freeBytesFor(database: string): number {
  if (isPostgres(database)) return Infinity
  return freeBytes(dirname(database)) - logBytes(database)
}

/** Size of a database's write-ahead log. */
export function logBytes(database: string): number {
  return statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0
}
