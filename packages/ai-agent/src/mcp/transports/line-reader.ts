/** Lines out of bytes, in bounded memory: the framing of MCP on stdio. */

/** A line was longer than allowed. Where the next one begins cannot be trusted either. */
export class LineTooLong extends Error {
  override readonly name = 'LineTooLong'
  constructor(maxBytes: number) {
    super(`it sent a message of more than ${maxBytes} bytes`)
  }
}

export interface LineReader {
  /** The lines that these bytes complete, without their ends; empty lines are left out. @throws LineTooLong */
  push(bytes: Uint8Array): Buffer[]
}

const NEWLINE = 10
const RETURN = 13

/** A line without end at the end of everything is no line. */
export function createLineReader(maxBytes: number): LineReader {
  let pieces: Uint8Array[] = []
  let held = 0

  return {
    push(bytes) {
      const lines: Buffer[] = []
      let from = 0
      for (;;) {
        const end = bytes.indexOf(NEWLINE, from)
        const piece = bytes.subarray(from, end < 0 ? bytes.length : end)
        held += piece.length
        if (held > maxBytes) throw new LineTooLong(maxBytes)
        if (end < 0) {
          // Copied: the chunk may be a view of a buffer that is used again, or keep a much larger one alive.
          if (piece.length > 0) pieces.push(Uint8Array.from(piece))
          return lines
        }
        const line = Buffer.concat([...pieces, piece])
        const text = line.at(-1) === RETURN ? line.subarray(0, -1) : line
        if (text.length > 0) lines.push(text)
        pieces = []
        held = 0
        from = end + 1
      }
    },
  }
}
