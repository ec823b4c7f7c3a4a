const table = new Uint32Array(256)
for (let i = 0; i < 256; i++) {
  let c = i
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0x82f63b78 : c >>> 1
  table[i] = c
}

/**
 * CRC-32C (Castagnoli) as a plain register: no inversion at either end, `start` is the caller's and must not be
 * zero, so that zeros never have the checksum zero.
 */
export function crc32c(start: number, bytes: Uint8Array, from = 0, to = bytes.length): number {
  let crc = start
  for (let i = from; i < to; i++) crc = (crc >>> 8) ^ (table[(crc ^ (bytes[i] ?? 0)) & 255] ?? 0)
  return crc >>> 0
}
