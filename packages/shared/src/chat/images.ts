/** Images attached to messages: types, limits and addresses. */
import { z } from 'zod'

/** Types that models accept and that browsers show without running anything. */
export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const
export const imageType = z.enum(IMAGE_TYPES)
export type ImageType = z.infer<typeof imageType>

/** One image, decoded. */
export const MAX_IMAGE_BYTES = 5 * 1024 * 1024
/** In one message. They are part of every later model request of the session. */
export const MAX_IMAGES = 10
/** All images of one message, decoded: it travels as one. */
export const MAX_MESSAGE_IMAGE_BYTES = 15 * 1024 * 1024

/** The model's text of a message with only images: some providers refuse one without words. */
export const WITHOUT_WORDS = '(an image, without words)'

/** Base64, or (where `data` is empty) an address on the service. */
export const messageImage = z.object({ mimeType: z.string(), data: z.string(), uri: z.string().optional() })
export type MessageImage = z.infer<typeof messageImage>

/** An uploaded image that waits for its message. */
export const imageId = z.string().regex(/^i_[0-9a-z]{20}$/, 'an image’s id looks like i_…')
/**
 * `POST /api/images` with the bytes as its body → 201. Stored for a day, until a message names it.
 * `GET /api/images/:id` → its bytes, for its sender; `DELETE` → 204: withdraws it.
 */
export const uploadedImage = z.object({ id: imageId, mimeType: imageType, bytes: z.number() })
export type UploadedImage = z.infer<typeof uploadedImage>

/** By its first 12 bytes, whatever its name; undefined for other types. */
export function imageTypeOf(beginning: Uint8Array): ImageType | undefined {
  const start = String.fromCharCode(...beginning.subarray(0, 12))
  if (start.startsWith('\u0089PNG\r\n\u001A\n')) return 'image/png'
  if (start.startsWith('\u00FF\u00D8\u00FF')) return 'image/jpeg'
  if (/^GIF8[79]a/.test(start)) return 'image/gif'
  if (/^RIFF[^]{4}WEBP/.test(start)) return 'image/webp'
  return undefined
}
