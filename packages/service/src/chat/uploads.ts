/**
 * Images between their upload and the message that takes them. Files, so that a message whose
 * answer was lost can be sent again, also after a restart; each waits for a day, whether a message
 * took it or not.
 */
import { createHash } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SandlotError } from '@sandlot/shared/errors'
import { newId } from '@sandlot/shared/ids'
import {
  type ImageType,
  MAX_IMAGE_BYTES,
  type UploadedImage,
  imageId,
  imageTypeOf,
} from '@sandlot/shared/images'
import { freeBytes } from '@sandlot/storage/free-bytes'
import { RESERVE_BYTES, noRoomError } from '@sandlot/storage/sessions/store-room'
import { InOrder } from './in-order.ts'

/** How long an image waits. */
const KEPT_MS = 24 * 60 * 60 * 1000
/** Bytes of one person's images that wait. */
const MAX_WAITING_BYTES = 200 * 1024 * 1024
/**
 * One person's images that wait. Small ones would fill a disk with files long before they fill it
 * with bytes.
 */
const MAX_WAITING = 200
/** Uploads of one person that are under way: each is in memory. */
const MAX_AT_ONCE = 32
const SWEEP_EVERY_MS = 60 * 60 * 1000

export interface Uploads {
  /**
   * Throws `bad_request` for what is no image, `too_large`, `rate_limited` for too many, and
   * `store_full`.
   */
  add(userId: string, bytes: Buffer): Promise<UploadedImage>
  /** Of this person only. Throws `not_found`. */
  read(userId: string, id: string): Promise<{ mimeType: ImageType; bytes: Buffer }>
  /** It waits no longer. Of this person only. Throws `not_found`. */
  remove(userId: string, id: string): Promise<void>
  /**
   * All of this person's, also what is being added. Throws `rate_limited` when too much of that
   * waits.
   */
  removeAll(userId: string): Promise<void>
  /** Resolves when nothing is swept any more. */
  close(): Promise<void>
}

interface UploadsOptions {
  /** A sweep in the background has failed; the next one tries again. */
  onProblem: (error: unknown) => void
  /** What tests set to see a limit without reaching it. */
  keptMs?: number
  maxWaitingBytes?: number
  maxWaiting?: number
  sweepEveryMs?: number
  freeBytes?: (folder: string) => number
}

/** `folder` is made. What is too old in it is removed, now, every hour, and with each upload. */
export async function openUploads(folder: string, options: UploadsOptions): Promise<Uploads> {
  const { onProblem, keptMs = KEPT_MS, sweepEveryMs = SWEEP_EVERY_MS } = options
  const { maxWaitingBytes = MAX_WAITING_BYTES, maxWaiting = MAX_WAITING } = options
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // A person's id comes from their account; a digest is a file name whatever it looks like.
  const folderOf = (userId: string): string =>
    join(folder, createHash('sha256').update(userId).digest('hex').slice(0, 32))
  const sweepAll = async (): Promise<void> => {
    for (const own of await readdir(folder, { withFileTypes: true }))
      if (own.isDirectory()) await sweep(join(folder, own.name), keptMs)
  }
  await sweepAll()
  let swept: Promise<void> = Promise.resolve()
  const sweeping = setInterval(() => {
    swept = swept.then(sweepAll).catch(onProblem)
  }, sweepEveryMs).unref()
  const free = options.freeBytes ?? freeBytes
  const adding = new InOrder(MAX_AT_ONCE)

  /** Where an image that still waits is. Throws `not_found`. */
  const find = async (userId: string, id: string): Promise<string> => {
    if (!imageId.safeParse(id).success) throw gone()
    const path = join(folderOf(userId), id)
    const { mtimeMs } = await stat(path)
    if (isOld(mtimeMs, keptMs)) throw gone()
    return path
  }

  return {
    async add(userId, bytes) {
      if (bytes.length > MAX_IMAGE_BYTES) throw tooLarge()
      const mimeType = imageTypeOf(bytes)
      if (mimeType === undefined)
        throw new SandlotError('bad_request', 'This is no image. Attach a PNG, JPEG, GIF or WebP.')
      const own = folderOf(userId)
      // In order: concurrent uploads would all be counted before the first is written.
      return adding.run(own, async () => {
        await mkdir(own, { recursive: true, mode: 0o700 })
        const waiting = await sweep(own, keptMs)
        if (waiting.bytes + bytes.length > maxWaitingBytes) throw noRoom('too_large')
        if (waiting.count >= maxWaiting) throw noRoom('rate_limited')
        if (free(folder) - bytes.length < RESERVE_BYTES) throw noRoomError('disk', 'The image')
        const id = newId('i')
        await writeFile(join(own, id), bytes, { mode: 0o600 })
        return { id, mimeType, bytes: bytes.length }
      })
    },
    async read(userId, id) {
      try {
        const bytes = await readFile(await find(userId, id))
        const mimeType = imageTypeOf(bytes)
        if (mimeType === undefined) throw gone()
        return { mimeType, bytes }
      } catch (error) {
        throw isMissing(error) ? gone() : error
      }
    },
    async remove(userId, id) {
      try {
        await rm(await find(userId, id))
      } catch (error) {
        throw isMissing(error) ? gone() : error
      }
    },
    async removeAll(userId) {
      const own = folderOf(userId)
      // Behind what is being added: that would make the folder again.
      await adding.run(own, () => rm(own, { recursive: true, force: true }))
    },
    async close() {
      clearInterval(sweeping)
      await swept
    },
  }
}

/** What an upload is refused with before it is read whole. */
export function tooLarge(): SandlotError {
  return new SandlotError('too_large', `An image has at most ${MAX_IMAGE_BYTES / 1024 / 1024} MiB.`)
}

function noRoom(code: 'too_large' | 'rate_limited'): SandlotError {
  return new SandlotError(
    code,
    'You have attached as many images as fit in a day. Remove some that you do not send, or try again later.',
  )
}

function gone(): SandlotError {
  return new SandlotError(
    'not_found',
    'An attached image is not kept any more: it waits for one day. Attach it again.',
  )
}

/** Removes expired images. Returns what is left. */
async function sweep(own: string, keptMs: number): Promise<{ bytes: number; count: number }> {
  const left = { bytes: 0, count: 0 }
  for (const entry of await entriesOf(own)) {
    if (!entry.isFile()) continue
    const path = join(own, entry.name)
    try {
      const { size, mtimeMs } = await stat(path)
      if (isOld(mtimeMs, keptMs)) {
        await rm(path, { force: true })
        continue
      }
      left.bytes += size
      left.count++
    } catch (error) {
      // Another sweep, or its sender, has just removed it.
      if (!isMissing(error)) throw error
    }
  }
  return left
}

/** None when the folder has just been removed with its person. */
async function entriesOf(own: string): Promise<Dirent[]> {
  try {
    return await readdir(own, { withFileTypes: true })
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

function isOld(mtimeMs: number, keptMs: number): boolean {
  return Date.now() - mtimeMs > keptMs
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
