/** Encodings of text files, by their bytes. For the page, the file tools and the service. */

export type TextEncoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'windows-1252'

export interface FoundEncoding {
  encoding: TextEncoding
  /** `guessed`: other encodings fit as well. `damaged`: some bytes are no text in it. */
  doubt?: 'guessed' | 'damaged'
}

export interface DecodedText extends FoundEncoding {
  /** A byte order mark stays. */
  text: string
}

/** Control characters that no text has; those of terminals are in logs. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\x00-\x07\x0E-\x1A\x1C-\x1F\x7F]/
/** Bytes that decide whether a file is text; a NUL after them is a character. */
const HEAD_BYTES = 8192
/** Least share of NULs among the characters of UTF-16 without a mark, and least bytes of one. */
const MOSTLY_LATIN = 0.3
const FEW_BYTES = 16

/**
 * Encoding by a byte order mark, else by the NULs of UTF-16, else strict UTF-8, else a guess.
 * Undefined: the first bytes are no text. `cut`: `bytes` end in the middle of the file.
 */
export function encodingOf(bytes: Uint8Array, cut = false): FoundEncoding | undefined {
  const head = bytes.subarray(0, HEAD_BYTES)
  const isHeadCut = cut || head.length < bytes.length
  const wide = markedUtf16(head) ?? unmarkedUtf16(head, isHeadCut)
  if (wide !== undefined) {
    if (CONTROLS.test(decoderOf(wide.encoding).decode(head, { stream: isHeadCut }))) return undefined
    const isWhole = decoded(bytes, wide.encoding, cut) !== undefined
    return isWhole ? wide : { encoding: wide.encoding, doubt: 'damaged' }
  }
  if (head.includes(0)) return undefined
  if (decoded(bytes, 'utf-8', cut) !== undefined) return { encoding: 'utf-8' }
  const lossy = new TextDecoder().decode(bytes)
  const lost = lossy.split('\uFFFD').length - 1
  // oxlint-disable-next-line no-control-regex
  const kept = lossy.replaceAll(/[\0-\x7F\uFFFD]/g, '').length
  // Five bytes of it have no character, which the decoder shows as controls.
  const western = decoderOf('windows-1252').decode(bytes)
  return kept < lost && !CONTROLS.test(western) && !/[\x80-\x9F]/.test(western)
    ? { encoding: 'windows-1252', doubt: 'guessed' }
    : { encoding: 'utf-8', doubt: 'damaged' }
}

/** The text of `bytes`, in which a character that the end cuts is left off. Undefined: no text. */
export function decodeText(bytes: Uint8Array, cut = false): DecodedText | undefined {
  const found = encodingOf(bytes, cut)
  if (found === undefined) return undefined
  return { ...found, text: decoderOf(found.encoding).decode(bytes, { stream: cut }) }
}

function decoderOf(encoding: TextEncoding) {
  return new TextDecoder(encoding, { ignoreBOM: true })
}

/** The bytes of a text. Undefined: the encoding does not have all of its characters. */
export function encodeText(text: string, encoding: TextEncoding): Uint8Array | undefined {
  if (encoding === 'utf-8') return new TextEncoder().encode(text)
  if (encoding === 'windows-1252') {
    const codes = Array.from(text, (char) => WESTERN.get(char))
    return codes.includes(undefined) ? undefined : Uint8Array.from(codes, (code) => code ?? 0)
  }
  const bytes = new Uint8Array(text.length * 2)
  const view = new DataView(bytes.buffer)
  for (let at = 0; at < text.length; at++)
    view.setUint16(at * 2, text.charCodeAt(at), encoding === 'utf-16le')
  return bytes
}

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, byte) => byte)
const WESTERN = new Map(Array.from(decoderOf('windows-1252').decode(ALL_BYTES), (char, byte) => [char, byte]))

/** A sentence about a file that is not simply UTF-8. */
export function encodingNote({ encoding, doubt }: FoundEncoding): string | undefined {
  if (doubt === 'damaged') return `Some bytes are not ${NAMES[encoding]} and are shown as \uFFFD.`
  if (doubt === 'guessed')
    return `The file is not UTF-8. It is shown as ${NAMES[encoding]}, which is a guess.`
  return encoding === 'utf-8' ? undefined : `The file is ${NAMES[encoding]}.`
}

const NAMES: Record<TextEncoding, string> = {
  'utf-8': 'UTF-8',
  'utf-16le': 'UTF-16 (little-endian)',
  'utf-16be': 'UTF-16 (big-endian)',
  'windows-1252': 'Windows-1252',
}

/** True if the bytes are UTF-8 without control characters. */
export function isPlainText(bytes: Uint8Array, cut: boolean): boolean {
  const text = decoded(bytes, 'utf-8', cut)
  return text !== undefined && !CONTROLS.test(text)
}

function markedUtf16([first, second, third, fourth]: Uint8Array): FoundEncoding | undefined {
  const isUtf32 = third === 0 && fourth === 0
  if (first === 0xff && second === 0xfe && !isUtf32) return { encoding: 'utf-16le' }
  return first === 0xfe && second === 0xff ? { encoding: 'utf-16be' } : undefined
}

/** UTF-16 by the NULs of its Latin letters: all in high bytes, and many. */
function unmarkedUtf16(head: Uint8Array, cut: boolean): FoundEncoding | undefined {
  const nuls: [number, number] = [0, 0]
  for (const [at, byte] of head.entries()) if (byte === 0) nuls[at % 2 === 0 ? 0 : 1]++
  const [even, odd] = nuls
  if (head.length < FEW_BYTES || (even > 0 && odd > 0) || even + odd < (head.length / 2) * MOSTLY_LATIN)
    return undefined
  const encoding = odd > 0 ? 'utf-16le' : 'utf-16be'
  return decoded(head, encoding, cut) === undefined ? undefined : { encoding, doubt: 'guessed' }
}

function decoded(bytes: Uint8Array, encoding: TextEncoding, cut: boolean): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: cut })
  } catch {
    return undefined
  }
}
