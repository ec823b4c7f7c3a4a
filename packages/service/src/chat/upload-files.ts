/** Images that wait, as files of the one service that there is: a folder for each person. */
import { createHash } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '@sandlot/shared/base/errors'
import { freeBytes } from '@sandlot/storage/database/free-bytes'
import { RESERVE_BYTES } from '@sandlot/storage/sessions/store-room'
import type { UploadsShelf } from './uploads.ts'

/** `folder` is made. `free`: bytes that are free there. */
export async function uploadFiles(
  folder: string,
  { free = freeBytes }: { free?: (folder: string) => number } = {},
): Promise<UploadsShelf> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // A person's id comes from their account; a digest is a file name whatever it looks like.
  const folderOf = (userId: string): string =>
    join(folder, createHash('sha256').update(userId).digest('hex').slice(0, 32))
  const find = async (userId: string, id: string, since: number): Promise<string | undefined> => {
    const path = join(folderOf(userId), id)
    const { mtimeMs } = await stat(path)
    return mtimeMs < since ? undefined : path
  }
  return {
    async waiting(userId, since) {
      const own = folderOf(userId)
      await mkdir(own, { recursive: true, mode: 0o700 })
      return sweep(own, since)
    },
    put: (userId, id, bytes) => writeFile(join(folderOf(userId), id), bytes, { mode: 0o600 }),
    get: (userId, id, since) =>
      orMissing(async () => {
        const path = await find(userId, id, since)
        return path === undefined ? undefined : readFile(path)
      }, undefined),
    remove: (userId, id, since) =>
      orMissing(async () => {
        const path = await find(userId, id, since)
        if (path === undefined) return false
        await rm(path)
        return true
      }, false),
    removeAll: (userId) => rm(folderOf(userId), { recursive: true, force: true }),
    async removeOlder(since) {
      for (const own of await readdir(folder, { withFileTypes: true }))
        if (own.isDirectory()) await sweep(join(folder, own.name), since)
    },
    hasRoom: (bytes) => free(folder) - bytes >= RESERVE_BYTES,
  }
}

/** Removes expired images. Returns what is left. */
async function sweep(own: string, since: number): Promise<{ bytes: number; count: number }> {
  const left = { bytes: 0, count: 0 }
  for (const entry of await entriesOf(own)) {
    if (!entry.isFile()) continue
    const path = join(own, entry.name)
    try {
      const { size, mtimeMs } = await stat(path)
      if (mtimeMs < since) {
        await rm(path, { force: true })
        continue
      }
      left.bytes += size
      left.count++
    } catch (error) {
      // Another sweep, or its sender, has just removed it.
      if (!hasCode(error, 'ENOENT')) throw error
    }
  }
  return left
}

/** None when the folder has just been removed with its person. */
async function entriesOf(own: string): Promise<Dirent[]> {
  try {
    return await readdir(own, { withFileTypes: true })
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}

async function orMissing<T>(work: () => Promise<T>, missing: T): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return missing
    throw error
  }
}
