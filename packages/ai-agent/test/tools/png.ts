/** PNGs for tests. */

/** One pixel. */
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

/** The pixel with zeros before its end, so that it has this many bytes. */
export function pngOf(bytes: number): Buffer {
  return Buffer.concat([PNG.subarray(0, -12), Buffer.alloc(bytes - PNG.length), PNG.subarray(-12)])
}
