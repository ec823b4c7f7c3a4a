/** Estimates token counts, rather too high than too low. */
import type { ModelMessage, ModelTool } from './model.ts'

/**
 * UTF-8 bytes of a token. English has about four, code three to four, Chinese three in a character
 * of about one token.
 */
const BYTES_PER_TOKEN = 3.5
/** Tokens of one image, whatever its size: providers' count for an ordinary one. */
const IMAGE_TOKENS = 1_500
/** Tokens of a message without its words. */
const MESSAGE_TOKENS = 6

export function textTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)
}

/** `image`: tokens of one. */
export function messageTokens(message: ModelMessage, image = IMAGE_TOKENS): number {
  const images = 'images' in message ? (message.images?.length ?? 0) * image : 0
  const calls = message.role === 'assistant' ? message.calls : []
  // Items that go back to a provider are in its own counts; their bytes say nothing of tokens.
  const words = calls.map(({ name, args }) => textTokens(name + JSON.stringify(args)))
  return (
    MESSAGE_TOKENS + textTokens(message.content) + images + words.reduce((sum, tokens) => sum + tokens, 0)
  )
}

/** `image`: tokens of one. */
export function messagesTokens(messages: readonly ModelMessage[], image = IMAGE_TOKENS): number {
  return messages.reduce((sum, message) => sum + messageTokens(message, image), 0)
}

export function toolsTokens(tools: readonly ModelTool[]): number {
  return tools.length === 0 ? 0 : textTokens(JSON.stringify(tools))
}

/**
 * `text` without its middle where it would take more than `most` tokens; with `cut` made shorter,
 * which gets characters.
 */
export function atMostTokens(
  text: string,
  most: number,
  cut: (text: string, chars: number) => string,
): string {
  let chars = text.length
  let shown = text
  // The shown text may have more bytes in a character than the omitted text.
  for (let tokens = textTokens(text); tokens > most && chars > 1; tokens = textTokens(shown)) {
    chars = Math.max(1, Math.min(chars - 1, Math.floor((chars * most) / tokens)))
    shown = cut(text, chars)
  }
  return shown
}
