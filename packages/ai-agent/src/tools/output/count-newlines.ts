/**
 * An index loop, because every byte of every output passes here: an iterator costs ten times as
 * much.
 */
export function newlinesInBytes(bytes: Uint8Array): number {
  let count = 0
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === 10) count++
  return count
}

export function newlinesInText(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}
