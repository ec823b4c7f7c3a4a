const LOW_BITS = 0x7f7f7f7f
const NEWLINES = 0x0a0a0a0a

/** Number of bytes 10. Four bytes at once, because every byte of every output passes here. */
export function newlinesInBytes(bytes: Uint8Array): number {
  if (bytes.length < 4) return bytes.filter((byte) => byte === 10).length
  // Bytes before the first whole word.
  const lead = -bytes.byteOffset & 3
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + lead, (bytes.length - lead) >> 2)
  let count = 0
  for (let at = 0; at < words.length; at++) {
    const other = (words[at] ?? 0) ^ NEWLINES
    // The high bit of each byte that is equal, and no other bit.
    const equal = ~(((other & LOW_BITS) + LOW_BITS) | other | LOW_BITS)
    if (equal !== 0) count += Math.imul(equal >>> 7, 0x01010101) >>> 24
  }
  for (let at = 0; at < lead; at++) if (bytes[at] === 10) count++
  for (let at = lead + words.length * 4; at < bytes.length; at++) if (bytes[at] === 10) count++
  return count
}

export function newlinesInText(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}
