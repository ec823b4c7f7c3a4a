import { createWriteStream, existsSync, mkdirSync, renameSync, statSync, type WriteStream } from 'node:fs'
import { dirname } from 'node:path'

const ROTATE_BYTES = 16 * 1024 * 1024

/** Append to a log file. One that has grown large is kept once under `.1`, so that logs never fill a disk. */
export function openLog(file: string): WriteStream {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  if (existsSync(file) && statSync(file).size > ROTATE_BYTES) renameSync(file, `${file}.1`)
  return createWriteStream(file, { flags: 'a', mode: 0o600 })
}

/** Levels as pino numbers them. */
const ERROR = 50

/**
 * What of a child's log line a person at the terminal should see: errors, and whatever is not a log line at all (a
 * stack trace, a warning of the runtime). Undefined for everything else.
 */
export function problemIn(line: string): string | undefined {
  if (line.trim() === '') return undefined
  let entry: unknown
  try {
    entry = JSON.parse(line)
  } catch {
    return line
  }
  if (typeof entry !== 'object' || entry === null || !('level' in entry) || typeof entry.level !== 'number')
    return line
  if (entry.level < ERROR) return undefined
  const message = 'msg' in entry && typeof entry.msg === 'string' ? entry.msg : line
  const cause =
    'err' in entry && typeof entry.err === 'object' && entry.err !== null && 'message' in entry.err
      ? entry.err.message
      : undefined
  return typeof cause === 'string' && !message.includes(cause) ? `${message}: ${cause}` : message
}

/** Cuts a stream of text into lines, whatever its chunks; `end` gives the last one without a line break. */
export function lineSplitter(onLine: (line: string) => void): {
  push: (text: string) => void
  end: () => void
} {
  let rest = ''
  return {
    push(text) {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) onLine(line)
    },
    end() {
      if (rest !== '') onLine(rest)
      rest = ''
    },
  }
}
