/**
 * Images between their upload and the message that takes them. Kept, so that a message whose answer
 * was lost can be sent again, also after a restart; each waits for a day, whether a message took it
 * or not.
 */
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { SandlotError } from '@sandlot/shared/base/errors'
import { newId } from '@sandlot/shared/base/ids'
import {
  type ImageType,
  MAX_IMAGE_BYTES,
  type UploadedImage,
  imageId,
  imageTypeOf,
} from '@sandlot/shared/chat/images'
import type { UploadShelf } from '@sandlot/storage/accounts/uploads'
import { noRoomError } from '@sandlot/storage/sessions/store-room'
import { InOrder } from './in-order.ts'

/** Lifetime of an unused image, in milliseconds. */
const RETENTION_MS = 24 * 60 * 60 * 1000
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
  /** An image of this person. Throws `not_found`. */
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

export interface UploadsShelf extends UploadShelf {
  /** True if this many bytes may still be stored. Absent: no limit but its own. */
  hasRoom?: (bytes: number) => boolean
}

interface UploadsOptions {
  /** A sweep in the background has failed; the next one tries again. */
  onProblem: (error: unknown) => void
  /** Set by tests, to see a limit without reaching it. */
  retentionMs?: number
  maxWaitingBytes?: number
  maxWaiting?: number
  sweepEveryMs?: number
}

/**
 * Removes expired images now, every hour, and with each upload. Limits are checked before an image
 * is stored: of one person who uploads at several services at once, each may exceed them by one.
 */
export async function openUploads(shelf: UploadsShelf, options: UploadsOptions): Promise<Uploads> {
  const { onProblem, retentionMs = RETENTION_MS, sweepEveryMs = SWEEP_EVERY_MS } = options
  const { maxWaitingBytes = MAX_WAITING_BYTES, maxWaiting = MAX_WAITING } = options
  const since = (): number => Date.now() - retentionMs
  await shelf.removeOlder(since())
  const sweeps = new SerialQueue()
  const sweeping = setInterval(() => {
    sweeps.run(() => shelf.removeOlder(since())).catch(onProblem)
  }, sweepEveryMs).unref()
  const adding = new InOrder(MAX_AT_ONCE)
  const isId = (id: string): boolean => imageId.safeParse(id).success

  return {
    async add(userId, bytes) {
      if (bytes.length > MAX_IMAGE_BYTES) throw tooLarge()
      const mimeType = imageTypeOf(bytes)
      if (mimeType === undefined)
        throw new SandlotError('bad_request', 'This is no image. Attach a PNG, JPEG, GIF or WebP.')
      // In order: concurrent uploads would all be counted before the first is put away.
      return adding.run(userId, async () => {
        const waiting = await shelf.waiting(userId, since())
        if (waiting.bytes + bytes.length > maxWaitingBytes) throw noRoom('too_large')
        if (waiting.count >= maxWaiting) throw noRoom('rate_limited')
        if (shelf.hasRoom?.(bytes.length) === false) throw noRoomError('disk', 'The image')
        const id = newId('i')
        await shelf.put(userId, id, bytes)
        return { id, mimeType, bytes: bytes.length }
      })
    },
    async read(userId, id) {
      const bytes = isId(id) ? await shelf.get(userId, id, since()) : undefined
      const mimeType = bytes && imageTypeOf(bytes)
      if (bytes === undefined || mimeType === undefined) throw gone()
      return { mimeType, bytes }
    },
    async remove(userId, id) {
      if (!isId(id) || !(await shelf.remove(userId, id, since()))) throw gone()
    },
    async removeAll(userId) {
      // After any upload under way.
      await adding.run(userId, () => shelf.removeAll(userId))
    },
    async close() {
      clearInterval(sweeping)
      await sweeps.idle()
    },
  }
}

/** The refusal of an upload before it is read whole. */
export function tooLarge(): SandlotError {
  return new SandlotError('too_large', `An image has at most ${MAX_IMAGE_BYTES / 1024 / 1024} MiB.`)
}

function noRoom(code: 'too_large' | 'rate_limited'): SandlotError {
  return new SandlotError(
    code,
    'You have reached the limit of images for a day. Remove some that you do not send, or try again later.',
  )
}

function gone(): SandlotError {
  return new SandlotError(
    'not_found',
    'An attached image has expired: an image that is not sent is stored for one day. Attach it again.',
  )
}
