/**
 * The first position from `at` on that is not in the middle of a UTF-8 character. What is broken
 * counts as beginning somewhere.
 */
export function characterStart(bytes: Uint8Array, at = 0): number {
  let position = at
  while (position < at + 3 && ((bytes[position] ?? 0) & 0xc0) === 0x80) position++
  return position
}
