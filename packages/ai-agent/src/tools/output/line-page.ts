/** One page of numbered lines, within what a model gets of one result. */
import type { CutLine } from './line-cutter.ts'
import { type ResultLimits, grouped } from './truncate-output.ts'

/** The most lines that a caller may request at once; a page has as many as fit. */
export const MAX_PAGE_LINES = 20_000
/** Characters that are shown of one line, where a page has room for them. */
const MAX_LINE_CHARS = 2_000
/** For a line's number and the words about its rest. */
const LINE_WORDS_CHARS = 100
/** For the notice below a page. */
const NOTICE_CHARS = 400
const NOTICE_LINES = 4

/** Limits of a page, so that it is one result with its notice. */
export interface PageRoom {
  chars: number
  lines: number
  /** The most characters of one line, so that a page has at least one. */
  lineChars: number
}

export function pageRoom({ chars, lines }: ResultLimits): PageRoom {
  const room = chars - NOTICE_CHARS
  return {
    chars: room,
    lines: lines - NOTICE_LINES,
    lineChars: Math.min(MAX_LINE_CHARS, room - LINE_WORDS_CHARS),
  }
}

export interface Page {
  /** Each begins with its number and a tab. */
  lines: string[]
  /** Number of the first line that is not in the page; absent when the text ended. */
  next?: number
  /** Lines of the text, when it was read to its end. */
  total?: number
  crlf: boolean
}

/**
 * The lines from number `from` (1 is the first) on, at most `limit` and as many as fit. Ends
 * `lines` early.
 */
export async function readPage(
  lines: AsyncGenerator<CutLine>,
  from: number,
  limit: number,
  room: PageRoom,
): Promise<Page> {
  const most = Math.min(limit, room.lines)
  const page: string[] = []
  let number = 0
  let chars = 0
  let crlf = false
  try {
    for await (const raw of lines) {
      number++
      crlf ||= raw.crlf
      if (number < from) continue
      const line = `${number}\t${shownLine(raw, room)}`
      if (page.length >= most || chars + line.length + 1 > room.chars)
        return { lines: page, next: number, crlf }
      page.push(line)
      chars += line.length + 1
    }
    return { lines: page, total: number, crlf }
  } finally {
    await lines.return(undefined)
  }
}

/** The line as far as it is shown, and how much is missing. */
export function shownLine({ text, chars }: CutLine, { lineChars }: PageRoom): string {
  if (chars <= lineChars) return text
  return `${text.toWellFormed()} [… ${grouped(chars - lineChars)} more characters in this line]`
}
