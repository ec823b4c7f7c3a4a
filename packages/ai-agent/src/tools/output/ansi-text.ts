/**
 * Terminal text for readers that are no terminal: escape sequences removed, `\r` progress lines
 * resolved. Streaming.
 */
import stripAnsi from 'strip-ansi'

/**
 * A line longer than this is cleaned in pieces, so that a command that never ends a line needs no
 * more memory.
 */
const LONGEST_LINE = 64 * 1024
/** An escape sequence longer than this is broken, and is text. */
const LONGEST_SEQUENCE = 4096
/** Everything that makes a line need cleaning. */
// oxlint-disable-next-line no-control-regex
const SPECIAL = /[\0-\x08\x0b-\x1f\x7f-\x9f]/
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f]/g

interface TerminalCleaner {
  /** The certain text after this piece. */
  push(text: string): string
  /** The rest. */
  end(): string
}

/**
 * Any cutting of a text into pieces gives the same result, as long as no line is longer than 64 Ki
 * characters.
 */
export function createTerminalCleaner(): TerminalCleaner {
  let rest = ''
  return {
    push(text) {
      const lastBreak = text.lastIndexOf('\n')
      if (lastBreak < 0) {
        rest += text
        return rest.length > LONGEST_LINE ? drain() : ''
      }
      const lines = rest + text.slice(0, lastBreak + 1)
      rest = text.slice(lastBreak + 1)
      return SPECIAL.test(lines) ? lines.split('\n').map(cleanLine).join('\n') : lines
    },
    end() {
      const line = cleanLine(rest)
      rest = ''
      return line
    },
  }

  /** Takes what is settled from a very long unfinished line. */
  function drain(): string {
    const lastReturn = rest.lastIndexOf('\r', rest.length - 2)
    if (lastReturn >= 0) {
      // Progress that is overwritten: only what came after the last return can still be seen, or
      // what nothing overwrote.
      const tail = rest.slice(lastReturn + 1)
      const before = saysAnything(tail)
        ? undefined
        : rest.slice(0, lastReturn).split('\r').findLast(saysAnything)
      rest = before === undefined ? `\r${tail}` : `\r${before}\r${tail}`
      if (rest.length <= LONGEST_LINE) return ''
    }
    const cut = safeCut(rest, rest.length)
    const piece = cleanLine(rest.slice(0, cut))
    rest = rest.slice(cut)
    return piece
  }
}

function cleanLine(line: string): string {
  if (!SPECIAL.test(line)) return line
  const plain = stripAnsi(line)
  const visible = plain.includes('\r') ? lastVisible(plain) : plain
  return visible.replace(CONTROLS, '')
}

function saysAnything(part: string): boolean {
  return cleanLine(part) !== ''
}

/** The final text of a progress line: the last part that is not empty. */
function lastVisible(line: string): string {
  const parts = line.split('\r')
  return parts.findLast((part) => part !== '') ?? ''
}

/** The largest cut at or before `cut` that is inside neither an escape sequence nor a character. */
export function safeCut(text: string, cut: number): number {
  const at =
    cut > 0 && cut < text.length && isLowSurrogate(text, cut) && isHighSurrogate(text, cut - 1)
      ? cut - 1
      : cut
  const sequence = sequenceAround(text, at)
  return sequence === undefined ? at : sequence.start
}

/** The smallest cut at or after `cut` that is inside neither. */
export function safeStart(text: string, cut: number): number {
  const at =
    cut > 0 && cut < text.length && isLowSurrogate(text, cut) && isHighSurrogate(text, cut - 1)
      ? cut + 1
      : cut
  const sequence = sequenceAround(text, at)
  return sequence === undefined ? at : sequence.end
}

// CSI, then the string sequences (OSC, DCS, SOS, PM, APC) up to BEL or ST, then everything of two
// characters.
const SEQUENCE =
  // oxlint-disable-next-line no-control-regex
  /^(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\?)?|\x1b[ -/]*[0-~]?)/

/** The escape sequence that begins before `at` and is not over there. */
function sequenceAround(text: string, at: number): { start: number; end: number } | undefined {
  const from = Math.max(0, at - LONGEST_SEQUENCE)
  const start = Math.max(text.lastIndexOf('\x1b', at - 1), text.lastIndexOf('\x9b', at - 1))
  if (at <= 0 || start < from) return undefined
  // ESC \ ends a string sequence that another ESC began.
  const opener = text[start + 1] === '\\' ? Math.max(text.lastIndexOf('\x1b', start - 1), from) : start
  for (const begin of [opener, start]) {
    const match = SEQUENCE.exec(text.slice(begin, begin + LONGEST_SEQUENCE))
    const end = begin + (match?.[0].length ?? 0)
    if (match !== null && end > at) return { start: begin, end }
  }
  return undefined
}

function isLowSurrogate(text: string, index: number): boolean {
  const unit = text.charCodeAt(index)
  return unit >= 0xdc00 && unit <= 0xdfff
}

function isHighSurrogate(text: string, index: number): boolean {
  const unit = text.charCodeAt(index)
  return unit >= 0xd800 && unit <= 0xdbff
}
