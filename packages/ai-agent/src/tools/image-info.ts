/**
 * Type and size of an image, from its bytes: only types that model providers accept, so that no
 * image breaks a session.
 */

export interface ImageInfo {
  mimeType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'
  width: number
  height: number
}

/** Longest side in pixels; providers refuse longer ones. */
export const MAX_SIDE = 8000

/** Undefined when it is none of the four kinds, or not a whole one. */
export function imageInfo(bytes: Buffer): ImageInfo | undefined {
  const found = png(bytes) ?? jpeg(bytes) ?? gif(bytes) ?? webp(bytes)
  return found !== undefined && found.width > 0 && found.height > 0 ? found : undefined
}

function png(bytes: Buffer): ImageInfo | undefined {
  const whole =
    bytes.length >= 45 &&
    bytes.subarray(0, 8).equals(Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')) &&
    bytes.toString('latin1', 12, 16) === 'IHDR' &&
    bytes.subarray(-32).includes('IEND')
  return whole
    ? { mimeType: 'image/png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
    : undefined
}

function jpeg(bytes: Buffer): ImageInfo | undefined {
  if (
    bytes.length < 4 ||
    bytes.readUInt16BE(0) !== 0xffd8 ||
    !bytes.subarray(-64).includes('\xff\xd9', 0, 'latin1')
  )
    return undefined
  // Segments follow one another, each with its length, until one says the size of the frame.
  for (let at = 2; at + 9 < bytes.length;) {
    if (bytes[at] !== 0xff) return undefined
    const marker = bytes[at + 1] ?? 0
    const frame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (frame)
      return { mimeType: 'image/jpeg', height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) }
    // A fill byte, and markers that stand alone.
    if (marker === 0xff) at += 1
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) at += 2
    else at += 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}

function gif(bytes: Buffer): ImageInfo | undefined {
  if (bytes.length < 14 || !/^GIF8[79]a$/.test(bytes.toString('latin1', 0, 6))) return undefined
  return { mimeType: 'image/gif', width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }
}

function webp(bytes: Buffer): ImageInfo | undefined {
  const isWebp =
    bytes.length >= 30 &&
    bytes.toString('latin1', 0, 4) === 'RIFF' &&
    bytes.toString('latin1', 8, 12) === 'WEBP' &&
    bytes.readUInt32LE(4) + 8 <= bytes.length + 1
  if (!isWebp) return undefined
  const mimeType = 'image/webp'
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8X':
      return { mimeType, width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
    case 'VP8 ':
      return { mimeType, width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21)
      return { mimeType, width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
    }
    default:
      return undefined
  }
}
