/** Pixel size of a PNG, GIF or WebP from its header: a small file may unpack to gigabytes. */

const MOST_PIXELS = 100_000_000

export function tooManyPixels(head: Uint8Array): boolean {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength)
  const start = String.fromCharCode(...head.subarray(0, 16))
  if (head.length >= 24 && start.startsWith('\u0089PNG'))
    return view.getUint32(16) * view.getUint32(20) > MOST_PIXELS
  if (head.length >= 10 && start.startsWith('GIF8'))
    return view.getUint16(6, true) * view.getUint16(8, true) > MOST_PIXELS
  return false
}
