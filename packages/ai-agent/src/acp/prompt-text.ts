/** The content blocks of a prompt as the text that the model reads. */
import type { ContentBlock } from '@agentclientprotocol/sdk'
import { SandlotError } from '@sandlot/shared/errors'
import { MAX_MESSAGE_CHARS } from '@sandlot/shared/frames'

/** Throws `bad_request` for what the agent did not advertise, and for an empty prompt; `too_large`. */
export function promptText(blocks: readonly ContentBlock[]): string {
  const text = blocks.map(blockText).join('\n\n').toWellFormed().replaceAll('\0', '')
  if (text.trim() === '') throw new SandlotError('bad_request', 'The message is empty.')
  if (text.length > MAX_MESSAGE_CHARS) {
    throw new SandlotError(
      'too_large',
      `A message may have ${MAX_MESSAGE_CHARS} characters; this one has ${text.length}. Put longer text into a file.`,
    )
  }
  return text
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'resource_link':
      return `[${block.name}](${block.uri})`
    case 'resource': {
      const { resource } = block
      if ('text' in resource) return `<context uri="${resource.uri}">\n${resource.text}\n</context>`
      throw new SandlotError('bad_request', `${resource.uri} is not text; only text can be attached.`)
    }
    default:
      throw new SandlotError('bad_request', `The agent cannot read content of type “${block.type}”.`)
  }
}
