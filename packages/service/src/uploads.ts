/**
 * Images between their upload and the message that takes them. Files, so that a message whose answer was lost can be sent
 * again, also after a restart; each waits for a day, whether a message took it or not.
 */
import { createHash } from 'node:crypto'
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

/** How long an image waits. */
const KEPT_MS = 24 * 60 * 60 * 1000
/** Bytes of one person's images that wait. */
const MAX_WAITING_BYTES = 200 * 1024 * 1024

export interface Uploads {
  /** Throws `bad_request` for what is no image, `too_large`. */
  add(userId: string, bytes: Buffer): Promise<UploadedImage>
  /** Of this person only. Throws `not_found`. */
  read(userId: string, id: string): Promise<{ mimeType: ImageType; bytes: Buffer }>
}

/** `folder` is made. What is too old in it is removed, now and with each upload. `limits`: for tests. */
export async function openUploads(
  folder: string,
  limits: { keptMs?: number; maxWaitingBytes?: number } = {},
): Promise<Uploads> {
  const { keptMs = KEPT_MS, maxWaitingBytes = MAX_WAITING_BYTES } = limits
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // A person's id comes from their account; a digest is a file name whatever it looks like.
  const folderOf = (userId: string): string =>
    join(folder, createHash('sha256').update(userId).digest('hex').slice(0, 32))
  for (const own of await readdir(folder)) await sweep(join(folder, own), keptMs)

  return {
    async add(userId, bytes) {
      if (bytes.length > MAX_IMAGE_BYTES) throw tooLarge()
      const mimeType = imageTypeOf(bytes)
      if (mimeType === undefined)
        throw new SandlotError('bad_request', 'This is no image. Attach a PNG, JPEG, GIF or WebP.')
      const own = folderOf(userId)
      await mkdir(own, { recursive: true, mode: 0o700 })
      if ((await sweep(own, keptMs)) + bytes.length > maxWaitingBytes)
        throw new SandlotError(
          'too_large',
          'You have attached as many images as fit in a day. Try again later.',
        )
      const id = newId('i')
      await writeFile(join(own, id), bytes, { mode: 0o600 })
      return { id, mimeType, bytes: bytes.length }
    },
    async read(userId, id) {
      if (!imageId.safeParse(id).success) throw gone()
      try {
        const bytes = await readFile(join(folderOf(userId), id))
        const mimeType = imageTypeOf(bytes)
        if (mimeType === undefined) throw gone()
        return { mimeType, bytes }
      } catch (error) {
        if (isMissing(error)) throw gone()
        throw error
      }
    },
  }
}

/** What an upload is refused with before it is read whole. */
export function tooLarge(): SandlotError {
  return new SandlotError('too_large', `An image has at most ${MAX_IMAGE_BYTES / 1024 / 1024} MiB.`)
}

function gone(): SandlotError {
  return new SandlotError(
    'not_found',
    'An attached image is not kept any more: it waits for one day. Attach it again.',
  )
}

/** Removes what has waited too long. Answers the bytes of the rest. */
async function sweep(own: string, keptMs: number): Promise<number> {
  let left = 0
  for (const name of await readdir(own)) {
    const path = join(own, name)
    try {
      const { size, mtimeMs } = await stat(path)
      if (Date.now() - mtimeMs > keptMs) await rm(path, { force: true })
      else left += size
    } catch (error) {
      // Another upload of the same person has just removed it.
      if (!isMissing(error)) throw error
    }
  }
  return left
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
