/**
 * Reader of stored text, such as a command's output: fetches its bytes in ranges, removes escape
 * sequences, and returns a page of lines or the lines that match a pattern.
 */
import { createTerminalCleaner } from './ansi-text.ts'
import { ToolError } from '../tool-error.ts'
import { type CutLine, createLineCutter } from './line-cutter.ts'
import type { LineMatcher } from './line-matcher.ts'
import { type Page, type PageRoom, readPage, shownLine } from './line-page.ts'
import { grouped } from './truncate-output.ts'

/** Bytes `[from, to)`; shorter at the end, none behind it. */
export type ReadBytes = (from: number, to: number) => Promise<Uint8Array>

const RANGE_BYTES = 256 * 1024
/** Bytes of a file in which lines are counted. */
const MAX_SCAN_BYTES = 64 * 1024 * 1024

interface LineSearch {
  /** Lines before and after each match. */
  context: number
  /** Number of the line to begin with; 1 is the first. */
  from: number
  /** Matches at most. */
  limit: number
}

/** Lines without escape sequences, in lots as they are read. @throws ToolError after 64 MiB. */
async function* lotsOf(read: ReadBytes, room: PageRoom, signal: AbortSignal): AsyncGenerator<CutLine[]> {
  const decoder = new TextDecoder()
  const cleaner = createTerminalCleaner()
  const cutter = createLineCutter(room.lineChars)
  for (let offset = 0; ;) {
    signal.throwIfAborted()
    const bytes = await read(offset, offset + RANGE_BYTES)
    if (bytes.length === 0) break
    offset += bytes.length
    if (offset > MAX_SCAN_BYTES) {
      throw new ToolError(
        'tool_error',
        `These lines are more than ${grouped(MAX_SCAN_BYTES)} bytes into the text. Read them with from_byte.`,
      )
    }
    yield cutter.push(cleaner.push(decoder.decode(bytes, { stream: true })))
  }
  const rest = cutter.push(cleaner.push(decoder.decode()) + cleaner.end())
  const last = cutter.end()
  yield last === undefined ? rest : [...rest, last]
}

async function* linesOf(read: ReadBytes, room: PageRoom, signal: AbortSignal): AsyncGenerator<CutLine> {
  for await (const lot of lotsOf(read, room, signal)) yield* lot
}

/** A page of the lines, each with its number. */
export function readStoredLines(
  read: ReadBytes,
  from: number,
  limit: number,
  room: PageRoom,
  signal: AbortSignal,
): Promise<Page> {
  return readPage(linesOf(read, room, signal), from, limit, room)
}

/**
 * Matching lines as `number:line`, lines round them as `number-line`, groups apart by `--`. `next`:
 * where to go on when there may be more.
 */
export async function findStoredLines(
  read: ReadBytes,
  matcher: LineMatcher,
  search: LineSearch,
  room: PageRoom,
  signal: AbortSignal,
): Promise<{ lines: string[]; next?: number }> {
  const found = createFound(search, room)
  for await (const lot of lotsOf(read, room, signal)) {
    const matching = new Set(
      await matcher.match(
        lot.map(({ text }) => text.toWellFormed()),
        signal,
      ),
    )
    for (const [index, line] of lot.entries()) {
      const next = found.add(shownLine(line, room), matching.has(index))
      if (next !== undefined) return { lines: found.lines, next }
    }
  }
  return { lines: found.lines }
}

/** Puts together what is shown, one line after another, until it is full. */
function createFound(
  { context, from, limit }: LineSearch,
  page: PageRoom,
): {
  lines: string[]
  /** The number to go on with once there is no room. */
  add(line: string, matches: boolean): number | undefined
} {
  const lines: string[] = []
  let before: { number: number; line: string }[] = []
  let number = 0
  let shownUpTo = 0
  let after = 0
  let matches = 0
  let chars = 0
  const show = (at: number, mark: string, line: string): void => {
    if (context > 0 && shownUpTo > 0 && at > shownUpTo + 1) lines.push('--')
    const text = `${at}${mark}${line}`
    lines.push(text)
    chars += text.length + 1
    shownUpTo = at
  }
  return {
    lines,
    add(line, isMatch) {
      number++
      if (number < from) return undefined
      if (isMatch) {
        const room = chars + before.reduce((sum, one) => sum + one.line.length + 10, line.length + 10)
        if (
          matches >= limit ||
          (matches > 0 && (room > page.chars || lines.length + before.length >= page.lines))
        )
          return number
        for (const one of before) show(one.number, '-', one.line)
        show(number, ':', line)
        before = []
        matches++
        after = context
      } else if (after > 0 && chars + line.length < page.chars && lines.length < page.lines) {
        show(number, '-', line)
        after--
      } else if (context > 0) {
        before = [...before, { number, line }].slice(-context)
      }
      return undefined
    },
  }
}
