import { statfs } from 'node:fs/promises'

import type { FreeSpace } from '../backend.ts'

/** Free space of this folder's file system; undefined when there is no such folder. */
export async function freeSpace(folder: string): Promise<FreeSpace | undefined> {
  try {
    const { bsize, bavail, files, ffree } = await statfs(folder)
    return { bytes: bsize * bavail, files: files === 0 ? Number.POSITIVE_INFINITY : ffree }
  } catch {
    return undefined
  }
}
