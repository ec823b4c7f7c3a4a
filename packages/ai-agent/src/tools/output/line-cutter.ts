/**
 * Text that comes in pieces → its lines, each kept only as far as it is shown: a line may be as
 * long as a file.
 */

export interface CutLine {
  /** The line without its end, at most `maxChars` of it. */
  text: string
  /** UTF-16 code units of the whole line, without its end. */
  chars: number
  /** It ends with CR LF. */
  crlf: boolean
}

interface LineCutter {
  /** The lines that end in this piece. */
  push(piece: string): CutLine[]
  /** The text after the last line break, if any. */
  end(): CutLine | undefined
}

export function createLineCutter(maxChars: number): LineCutter {
  let head = ''
  let chars = 0
  let last = ''

  const add = (part: string): void => {
    if (head.length < maxChars) head += part.slice(0, maxChars - head.length)
    chars += part.length
    last = part.at(-1) ?? last
  }
  const take = (): CutLine => {
    const crlf = last === '\r'
    const whole = crlf ? chars - 1 : chars
    const line = { text: head.slice(0, whole), chars: whole, crlf }
    head = ''
    chars = 0
    last = ''
    return line
  }

  return {
    push(piece) {
      const parts = piece.split('\n')
      const rest = parts.pop() ?? ''
      const lines = parts.map((part) => {
        add(part)
        return take()
      })
      add(rest)
      return lines
    },
    end: () => (chars === 0 ? undefined : take()),
  }
}
