import { statfs } from 'node:fs/promises'

/**
 * Free bytes and inodes of the file system that this folder is on. Undefined when there is no such folder, for example
 * because the controller is in a container of its own.
 */
export async function freeOn(folder: string): Promise<{ bytes: number; files: number } | undefined> {
  try {
    const { bsize, bavail, files, ffree } = await statfs(folder)
    return { bytes: bsize * bavail, files: files === 0 ? Number.POSITIVE_INFINITY : ffree }
  } catch {
    return undefined
  }
}
