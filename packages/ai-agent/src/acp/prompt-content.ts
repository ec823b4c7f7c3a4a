/** The content blocks of a prompt as what the model gets: one text, and the images behind it. */
import type { ContentBlock } from '@agentclientprotocol/sdk'
import { SandlotError } from '@sandlot/shared/errors'
import { MAX_MESSAGE_CHARS } from '@sandlot/shared/frames'
import type { ModelImage } from '../model/model.ts'
import { MAX_SIDE, imageInfo } from '../tools/image-info.ts'

/** Of one message. They go to the model with every request of the session. */
const MOST_IMAGES = 10
/** Base64 characters of one image, about 5 MB. */
const MAX_IMAGE_CHARS = 7_000_000

export interface PromptContent {
  text: string
  images: ModelImage[]
}

/** Throws `bad_request` for what the agent did not advertise, and for an empty prompt; `too_large`. */
export function promptContent(blocks: readonly ContentBlock[]): PromptContent {
  const parts = blocks.map(partOf)
  const texts = parts.flatMap((part) => (typeof part === 'string' ? [part] : []))
  const images = parts.flatMap((part) => (typeof part === 'string' ? [] : [part]))
  const text = texts.join('\n\n').toWellFormed().replaceAll('\0', '')
  if (text.trim() === '' && images.length === 0)
    throw new SandlotError('bad_request', 'The message is empty.')
  if (text.length > MAX_MESSAGE_CHARS) {
    throw new SandlotError(
      'too_large',
      `A message may have ${MAX_MESSAGE_CHARS} characters; this one has ${text.length}. Put longer text into a file.`,
    )
  }
  if (images.length > MOST_IMAGES)
    throw new SandlotError(
      'too_large',
      `A message may have ${MOST_IMAGES} images; this one has ${images.length}.`,
    )
  // Some providers refuse a message without words.
  return { text: text.trim() === '' ? '(an image, without words)' : text, images }
}

function partOf(block: ContentBlock): string | ModelImage {
  switch (block.type) {
    case 'text':
      return block.text
    case 'resource_link':
      return `[${block.name}](${block.uri})`
    case 'image':
      return imageOf(block.data)
    case 'resource': {
      const { resource } = block
      if ('text' in resource) return `<context uri="${resource.uri}">\n${resource.text}\n</context>`
      if (resource.mimeType?.startsWith('image/') === true) return imageOf(resource.blob)
      throw new SandlotError(
        'bad_request',
        `${resource.uri} is neither text nor an image; nothing else can be attached.`,
      )
    }
    default:
      throw new SandlotError('bad_request', `The agent cannot read content of type “${block.type}”.`)
  }
}

/** By its bytes, not by what the client calls it: one that a provider refuses would break the session for good. */
function imageOf(data: string): ModelImage {
  if (data.length > MAX_IMAGE_CHARS)
    throw new SandlotError('too_large', 'An image may have about 5 MB; this one has more.')
  const bytes = Buffer.from(data, 'base64')
  const image = imageInfo(bytes)
  if (image === undefined || Math.max(image.width, image.height) > MAX_SIDE)
    throw new SandlotError(
      'bad_request',
      `An image has to be a whole PNG, JPEG, GIF or WebP of at most ${MAX_SIDE} pixels a side.`,
    )
  return { mimeType: image.mimeType, data: bytes.toString('base64') }
}
