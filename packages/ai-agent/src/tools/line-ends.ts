/** Line ends of texts: CR LF, as on Windows, or LF. */

/** Undefined: the text has no line end, or both kinds. */
export function lineEndOf(text: string): '\n' | '\r\n' | undefined {
  const all = text.split('\n').length - 1
  if (all === 0) return undefined
  const crlf = text.split('\r\n').length - 1
  return crlf === all ? '\r\n' : crlf === 0 ? '\n' : undefined
}

export function withLineEnd(text: string, end: '\n' | '\r\n'): string {
  return text.replaceAll(/\r?\n/g, end)
}
