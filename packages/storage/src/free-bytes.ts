/** Free space of the disk under a folder, as an unprivileged process may use it. */
import { statfsSync } from 'node:fs'

/** Microseconds: it is asked before each write of an output. Throws what the file system throws. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
