/**
 * HTTP calls and URLs for images in messages: upload, discard, show, and upload again for another
 * message.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import {
  IMAGE_TYPES,
  type MessageImage,
  type UploadedImage,
  uploadedImage,
} from '@sandlot/shared/chat/images'
import { call, urlOf } from './call.ts'
import { ApiError, errorOf, jsonOf } from './http.ts'

/**
 * Uploads one image. `onProgress` gets the part that is sent, 0 to 1, which `fetch` does not
 * report. Throws `ApiError`, and an `AbortError` when `signal` aborts.
 */
export function uploadImage(
  file: Blob,
  mimeType: string,
  options: { onProgress?: (part: number) => void; signal?: AbortSignal } = {},
): Promise<UploadedImage> {
  const { onProgress, signal } = options
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', '/api/images')
    request.setRequestHeader('content-type', mimeType)
    request.setRequestHeader('accept', 'application/json')
    request.upload.addEventListener('progress', ({ loaded, total }) => onProgress?.(loaded / total))
    request.addEventListener('load', () => {
      const body = jsonOf(request.responseText)
      const made = uploadedImage.safeParse(body)
      if (request.status === 201 && made.success) return resolve(made.data)
      reject(errorOf(request.status, body))
    })
    request.addEventListener('error', () =>
      reject(new ApiError('network', 'The connection was lost. Try again.')),
    )
    request.addEventListener('abort', () => reject(new DOMException('Upload stopped.', 'AbortError')))
    signal?.addEventListener('abort', () => request.abort(), { once: true })
    request.send(file)
  })
}

/** The URL of an image that waits for its message. */
export function waitingImageUrl(id: string): string {
  return urlOf('getImage', { params: { id } })
}

/**
 * It need not wait any longer. Does not reject: what stays is removed by the service after a day.
 */
export async function discardImage(id: string): Promise<void> {
  try {
    await call('removeImage', { params: { id } })
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_found') return
    console.warn(`An image that was removed stays on the service for a day: ${messageOf(error)}`)
  }
}

/** The URL that shows it; undefined for a type that no browser shows without running anything. */
export function imageSrc({ mimeType, data, uri }: MessageImage): string | undefined {
  if (!(IMAGE_TYPES as readonly string[]).includes(mimeType)) return undefined
  if (data !== '') return `data:${mimeType};base64,${data}`
  // Only from here: whatever else an address may be, nothing is loaded from there.
  return uri?.startsWith('/api/') === true ? uri : undefined
}

/**
 * The images of a message that was sent, as files: those that a message of ours can have. Throws
 * `ApiError`.
 */
export function readAgain(images: readonly MessageImage[]): Promise<File[]> {
  return Promise.all(
    images.flatMap((image, index) => {
      const src = imageSrc(image)
      return src === undefined ? [] : [fileAt(src, image.mimeType, `Image ${index + 1}`)]
    }),
  )
}

async function fileAt(src: string, type: string, name: string): Promise<File> {
  const response = await fetch(src, { credentials: 'same-origin' })
  if (!response.ok) throw new ApiError('unexpected', 'An image of this message couldn’t be read.')
  return new File([await response.blob()], name, { type })
}

/**
 * Uploads the images of a sent message again for another one. `left` counts those that no message
 * of ours can have: of another type, or from elsewhere. Throws `ApiError`.
 */
export async function uploadAgain(
  images: readonly MessageImage[],
): Promise<{ sent: UploadedImage[]; left: number }> {
  const files = await readAgain(images)
  const sent = await Promise.all(files.map((file) => uploadImage(file, file.type)))
  return { sent, left: images.length - sent.length }
}
