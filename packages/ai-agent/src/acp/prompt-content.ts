/** The content blocks of a prompt as what the model gets: one text, and the images behind it. */
import type { ContentBlock } from '@agentclientprotocol/sdk'
import { SandlotError } from '@sandlot/shared/base/errors'
import { MAX_MESSAGE_CHARS } from '@sandlot/shared/chat/frames'
import { MAX_IMAGES, MAX_MESSAGE_IMAGE_BYTES, WITHOUT_WORDS } from '@sandlot/shared/chat/images'
import { storableText } from '@sandlot/shared/base/storable-text'
import type { ModelImage } from '../model/model.ts'
import { checkImage } from '../tools/image-content.ts'

interface PromptContent {
  text: string
  images: ModelImage[]
}

/**
 * Throws `bad_request` for what the agent did not advertise, and for an empty prompt; `too_large`.
 */
export function promptContent(blocks: readonly ContentBlock[], takesImages = false): PromptContent {
  const parts = blocks.map(partOf)
  const texts = parts.flatMap((part) => (typeof part === 'string' ? [part] : []))
  const images = parts.flatMap((part) => (typeof part === 'string' ? [] : [part]))
  const text = storableText(texts.join('\n\n'))
  if (text.trim() === '' && images.length === 0)
    throw new SandlotError('bad_request', 'The message is empty.')
  if (text.length > MAX_MESSAGE_CHARS) {
    throw new SandlotError(
      'too_large',
      `A message may have ${MAX_MESSAGE_CHARS} characters; this one has ${text.length}. Put longer text into a file.`,
    )
  }
  if (images.length > 0 && !takesImages)
    throw new SandlotError(
      'bad_request',
      'The configured model takes no images; send the message without them.',
    )
  if (images.length > MAX_IMAGES)
    throw new SandlotError(
      'too_large',
      `A message may have ${MAX_IMAGES} images; this one has ${images.length}.`,
    )
  const bytes = images.reduce((sum, { data }) => sum + Buffer.byteLength(data, 'base64'), 0)
  if (bytes > MAX_MESSAGE_IMAGE_BYTES) {
    const [most, is] = [MAX_MESSAGE_IMAGE_BYTES, bytes].map((n) => `${(n / 1024 / 1024).toFixed(1)} MiB`)
    throw new SandlotError(
      'too_large',
      `The images of a message may have ${most} together; these have ${is}.`,
    )
  }
  return { text: text.trim() === '' ? WITHOUT_WORDS : text, images }
}

function partOf(block: ContentBlock): string | ModelImage {
  switch (block.type) {
    case 'text':
      return block.text
    case 'resource_link':
      return `[${block.name}](${block.uri})`
    case 'image':
      return imageOf(block.data, block.mimeType)
    case 'resource': {
      const { resource } = block
      if ('text' in resource) return `<context uri="${resource.uri}">\n${resource.text}\n</context>`
      if (resource.mimeType?.startsWith('image/') === true) return imageOf(resource.blob, resource.mimeType)
      throw new SandlotError(
        'bad_request',
        `${resource.uri} is neither text nor an image; nothing else can be attached.`,
      )
    }
    default:
      throw new SandlotError('bad_request', `The agent cannot read content of type “${block.type}”.`)
  }
}

function imageOf(data: string, called: string): ModelImage {
  const checked = checkImage(data, called)
  if (checked.fits) return checked.image
  throw new SandlotError(
    checked.problem === 'too_large' ? 'too_large' : 'bad_request',
    `An image of the message cannot be sent (${checked.words}).`,
  )
}
