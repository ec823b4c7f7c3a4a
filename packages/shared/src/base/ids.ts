/** Unguessable text ids without an order. Works in browser and Node. */
import { z } from 'zod'

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz'

/** A caller may choose a session id; ours look like `s_…`. */
export const sessionId = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'a session id is 1–64 of A–Z a–z 0–9 _ -')
/** A client's key for one submission; the same key is the same prompt. */
export const requestId = z.string().min(1).max(128)
/** A message's id in a log: ours look like `m_…`. */
export const messageId = z.string().min(1).max(128)

/** Random text of `length` characters from 0–9a–z, about 5.1 bits each, without modulo bias. */
export function randomText(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length * 2))) {
      if (byte < 252 && text.length < length) text += ALPHABET.charAt(byte % 36)
    }
  }
  return text
}

/**
 * `<prefix>_<20 random characters>`: about 103 bits. Prefixes: s session, p prompt, m message, c
 * call, u user, r request, i image.
 */
export function newId(prefix: 's' | 'p' | 'm' | 'c' | 'u' | 'r' | 'i'): string {
  return `${prefix}_${randomText(20)}`
}
