/** One page of numbered lines, within what a model gets of one result. */
import type { CutLine } from './line-cutter.ts'
import { MAX_CHARS, MAX_LINES, grouped } from './truncate-output.ts'

/** Characters that are shown of one line. */
export const MAX_LINE_CHARS = 2000
/** Left for the notice, within what a model gets of one result. */
export const PAGE_CHARS = MAX_CHARS - 400
export const PAGE_LINES = MAX_LINES - 4

export interface Page {
  /** Each begins with its number and a tab. */
  lines: string[]
  /** Number of the first line that is not in the page; absent when the text ended. */
  next?: number
  /** Lines of the text, when it was read to its end. */
  total?: number
  crlf: boolean
}

/** The lines from number `from` (1 is the first) on, at most `limit` and as many as fit. Ends `lines` early. */
export async function readPage(lines: AsyncGenerator<CutLine>, from: number, limit: number): Promise<Page> {
  const most = Math.min(limit, PAGE_LINES)
  const page: string[] = []
  let number = 0
  let chars = 0
  let crlf = false
  try {
    for await (const raw of lines) {
      number++
      crlf ||= raw.crlf
      if (number < from) continue
      const line = `${number}\t${shownLine(raw)}`
      if (page.length >= most || chars + line.length + 1 > PAGE_CHARS)
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
export function shownLine({ text, chars }: CutLine): string {
  if (chars <= MAX_LINE_CHARS) return text
  return `${text.toWellFormed()} [… ${grouped(chars - MAX_LINE_CHARS)} more characters in this line]`
}
