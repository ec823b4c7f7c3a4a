/** Media types of files by their bytes; names are ignored. */
import { imageTypeOf } from '../chat/images.ts'
import { decodeText, isPlainText } from './text-encoding.ts'

/** Leading bytes that are inspected. */
export const LOOKED_AT = 8192

const BYTES = 'application/octet-stream'

/**
 * Types other than text and model images; the first match wins: position and text of the magic
 * bytes in Latin-1, the type, and other required text.
 */
const BINARY: readonly (readonly [at: number, mark: string, type: string, names?: string])[] = [
  [4, 'ftypavif', 'image/avif'],
  [4, 'ftypavis', 'image/avif'],
  [4, 'ftyphei', 'image/heic'],
  [4, 'ftypmif1', 'image/heic'],
  [0, '\0\0\x01\0', 'image/x-icon'],
  [4, 'ftypM4A', 'audio/mp4'],
  [4, 'ftypqt', 'video/quicktime'],
  [4, 'ftyp', 'video/mp4'],
  [0, '\x1A\x45\xDF\xA3', 'video/webm', 'webm'],
  [0, '\x1A\x45\xDF\xA3', 'video/x-matroska'],
  [0, 'OggS', 'video/ogg', 'theora'],
  [0, 'OggS', 'audio/ogg'],
  [8, 'WAVEfmt', 'audio/wav'],
  [0, 'fLaC', 'audio/flac'],
  [0, 'ID3', 'audio/mpeg'],
  ...['\xE3', '\xF2', '\xF3', '\xFA', '\xFB'].map((byte) => [0, `\xFF${byte}`, 'audio/mpeg'] as const),
  [0, '\xFF\xF1', 'audio/aac'],
  [0, '\xFF\xF9', 'audio/aac'],
  [0, 'BM', 'image/bmp', '\0\0\0\0'],
]

const SVG = /^\uFEFF?\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^]*?-->\s*)*(?:<!DOCTYPE svg[^]*?>\s*)?<svg[\s>]/i

/** Readers look for it in the first 1,024 bytes. */
const PDF = /^[^\0]{0,1023}?%PDF-/
/** A PDF may have no byte that is not ASCII; a text about PDFs goes on in words. */
const PDF_IN_ASCII = /^[^\0]{0,1023}?%PDF-\d\.\d\s*(?:%|\d+ \d+ obj\b|$)/

/** `beginning` of more bytes than `LOOKED_AT`, or the whole file. */
export function fileTypeOf(beginning: Uint8Array): string {
  const looked = beginning.subarray(0, LOOKED_AT)
  const latin = Array.from(looked.subarray(0, 2048), (byte) => String.fromCharCode(byte)).join('')
  const cut = beginning.length >= LOOKED_AT
  const isText = isPlainText(looked, cut)
  if ((isText ? PDF_IN_ASCII : PDF).test(latin)) return 'application/pdf'
  const binary = isText ? undefined : binaryTypeOf(looked, latin)
  if (binary !== undefined) return binary
  const found = decodeText(looked, cut)
  if (found === undefined) return BYTES
  return SVG.test(found.text) ? 'image/svg+xml' : `text/plain; charset=${found.encoding}`
}

function binaryTypeOf(looked: Uint8Array, latin: string): string | undefined {
  const binary = BINARY.find(
    ([at, mark, , names]) => latin.startsWith(mark, at) && (names === undefined || latin.includes(names)),
  )
  return imageTypeOf(looked) ?? binary?.[2]
}

/** Shown by the preview, but downloaded at its own address: a tab would run it as a document. */
export function isDocument(type: string): boolean {
  return type === 'image/svg+xml' || type === 'application/pdf'
}
