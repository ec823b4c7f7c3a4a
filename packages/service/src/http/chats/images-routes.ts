/** Images: those that wait for their message, and those of sessions that one sees. */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type SessionEvent, seqOf } from '@sandlot/shared/chat/events'
import { type ImageType, MAX_IMAGE_BYTES, imageType } from '@sandlot/shared/chat/images'
import type { SessionReader } from '@sandlot/storage/sessions/store'
import { bodyLimit } from 'hono/body-limit'
import { imagesIn } from '../../chat/event-images.ts'
import { tooLarge } from '../../chat/uploads.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'
import { recheckCaller } from '../request.ts'

/** Refuses a larger image while it arrives. */
export const imageLimit = bodyLimit({
  maxSize: MAX_IMAGE_BYTES,
  onError: () => {
    throw tooLarge()
  },
})

export function imagesHandlers(parts: Parts) {
  const { sessions, uploads, traffic } = parts
  return {
    uploadImage: async (c) => {
      // Other types can be sent across sites without asking.
      if (!imageType.safeParse(c.req.header('content-type')).success)
        throw new SandlotError(
          'bad_request',
          'Send an image as image/png, image/jpeg, image/gif or image/webp.',
        )
      const bytes = Buffer.from(await c.req.arrayBuffer())
      await traffic.pass(c.var.caller.account.id, bytes.length)
      await recheckCaller(c)
      return c.json(await uploads.add(c.var.caller.account.id, bytes), 201)
    },
    getImage: async (c) => {
      const { mimeType, bytes } = await uploads.read(c.var.caller.account.id, c.req.param('id'))
      // It may be removed or expire: the page must learn that instead of showing a cached copy.
      return sendImage(c, mimeType, bytes, 'no-store')
    },
    removeImage: async (c) => {
      await uploads.remove(c.var.caller.account.id, c.req.param('id'))
      return c.body(null, 204)
    },
    getChatImage: async (c) => {
      const { id, seq, index } = c.req.param()
      await sessions.get(c.var.caller.account, id)
      return sendEventImage(c, await sessions.reader(), { sessionId: id, seq, index })
    },
  } satisfies Partial<Handlers>
}

interface WantedImage {
  sessionId: string
  /** The number in the address. */
  seq: string
  index: string
}

/**
 * The image of an event, as far as `shown` shows that event. To be called once it is checked that
 * the caller may read it. Throws `not_found`.
 */
export async function sendEventImage(
  c: Ctx,
  reader: SessionReader,
  { sessionId, seq, index }: WantedImage,
  shown: (event: SessionEvent) => SessionEvent | undefined = (event) => event,
): Promise<Response> {
  const number = /^[1-9]\d{0,14}$/.test(seq) ? Number(seq) : Number.NaN
  if (Number.isNaN(number)) throw noImage()
  const [found] = await reader.log.read(sessionId, number - 1, 1)
  const event = found === undefined || seqOf(found) !== number ? undefined : shown(found)
  const image = event === undefined ? undefined : imagesIn(event)[Number(index)]
  const known = imageType.safeParse(image?.mimeType)
  if (image === undefined || !known.success) throw noImage()
  // Not cached: a session id can be used again after deletion, and each request is authorized.
  return sendImage(c, known.data, Buffer.from(image.data, 'base64'), 'private, no-cache')
}

function sendImage(c: Ctx, mimeType: ImageType, bytes: Buffer, caching: string): Response {
  return c.body(new Uint8Array(bytes), 200, {
    'content-type': mimeType,
    'x-content-type-options': 'nosniff',
    'content-disposition': 'inline',
    'cache-control': caching,
  })
}

function noImage(): SandlotError {
  return new SandlotError('not_found', 'There is no such image.')
}
