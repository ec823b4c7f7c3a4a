/** The `Range` header of one request (RFC 9110), as far as bytes of one piece go. */

/** Bytes `[from, to)`. */
export interface ByteRange {
  from: number
  to: number
}

/**
 * The requested part of `size` bytes. `'all'`: no header, several ranges, or an unknown one, which
 * a server may ignore. `'none'`: nothing of it exists (416).
 */
export function readRange(header: string | undefined, size: number): ByteRange | 'all' | 'none' {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '')
  if (match === null) return 'all'
  const [, first = '', last = ''] = match
  if (first === '' && last === '') return 'all'
  if (first === '') {
    const count = Math.min(Number(last), size)
    return count === 0 ? 'none' : { from: size - count, to: size }
  }
  const from = Number(first)
  if (last !== '' && Number(last) < from) return 'all'
  if (from >= size) return 'none'
  return { from, to: last === '' ? size : Math.min(Number(last) + 1, size) }
}
