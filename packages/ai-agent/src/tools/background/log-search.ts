/**
 * Looks for lines in a log while it grows: what was whole at one look is not read again at the
 * next.
 */
import { createLineMatcher } from '../output/line-matcher.ts'
import type { PageRoom } from '../output/line-page.ts'
import { type ReadBytes, findStoredLines } from '../output/stored-text.ts'

/** Lines of one look. */
const MOST_LINES = 200
const NEWLINE = 10

interface LogSearch extends AsyncDisposable {
  /**
   * The lines that match, of those that were not whole when it looked last; at first of all from
   * the beginning. `size`: bytes of the log now. Rejects with the signal's reason when it aborts.
   */
  find(size: number, signal: AbortSignal): Promise<string[]>
}

/**
 * `from`: the byte to begin with. `pattern`: a regular expression of JavaScript. @throws ToolError
 * when it is none.
 */
export function createLogSearch(read: ReadBytes, from: number, pattern: string, room: PageRoom): LogSearch {
  const matcher = createLineMatcher(pattern, false)
  /** The start of the first incomplete line. */
  let begin = from
  let seen: number | undefined
  return {
    async find(size, signal) {
      if (size === seen) return []
      seen = size
      const start = begin
      const readOn: ReadBytes = async (a, b) => {
        const bytes = await read(start + a, start + b)
        const end = bytes.lastIndexOf(NEWLINE)
        if (end !== -1) begin = start + a + end + 1
        return bytes
      }
      const { lines } = await findStoredLines(
        readOn,
        matcher,
        { context: 0, from: 1, limit: MOST_LINES },
        room,
        signal,
      )
      return lines.map((line) => line.slice(line.indexOf(':') + 1))
    },
    [Symbol.asyncDispose]: () => matcher[Symbol.asyncDispose](),
  }
}
