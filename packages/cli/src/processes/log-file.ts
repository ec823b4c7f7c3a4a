import { createWriteStream, existsSync, mkdirSync, renameSync, statSync, type WriteStream } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '@sandlot/shared/base/errors'

const ROTATE_BYTES = 16 * 1024 * 1024
/** Levels as pino numbers them. */
const WARNING = 40
const ERROR = 50
/** Most bytes buffered for a slow disk. */
const WAITING_BYTES = 4 * 1024 * 1024

/** Opens a log for appending. A large one is first renamed to `.1`, replacing the one before. */
function openLog(file: string): WriteStream {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  if (existsSync(file) && statSync(file).size > ROTATE_BYTES) renameSync(file, `${file}.1`)
  return createWriteStream(file, { flags: 'a', mode: 0o600 })
}

interface Log {
  /**
   * Appends in order. Text is lost on a full disk and while 4 MiB are buffered; in the second case
   * a line in the log has the number of lost bytes.
   */
  write(text: string): void
  /** Resolves when everything is in the file, or after `patienceMs`. Never rejects. */
  end(patienceMs: number): Promise<void>
}

/** A log that may fail. `problem` is called once, and again only after a successful write. */
export function createLog(file: string, problem: (text: string) => void): Log {
  let failing = false
  let lostBytes = 0
  const fail = (error: unknown): void => {
    if (!failing) problem(`Couldn’t write its log: ${messageOf(error)}`)
    failing = true
  }
  const open = (): WriteStream | undefined => {
    try {
      // Without a listener, a full disk would end the launcher and its children.
      return openLog(file).on('error', fail)
    } catch (error) {
      fail(error)
      return undefined
    }
  }
  /** A line in the format of the children. */
  const loss = (): string => {
    if (lostBytes === 0) return ''
    const msg = `${lostBytes} bytes of this log are missing here: the disk was too slow`
    lostBytes = 0
    return `${JSON.stringify({ level: WARNING, time: Date.now(), msg })}\n`
  }
  let stream = open()
  return {
    write(text) {
      // An error destroys the stream.
      if (stream === undefined || stream.destroyed) stream = open()
      if (stream === undefined) return
      if (lostBytes > 0 && stream.writableLength === 0) stream.write(loss())
      if (lostBytes > 0 || stream.writableLength > WAITING_BYTES) {
        if (lostBytes === 0) fail(new Error('the disk is too slow or hangs; new lines are dropped'))
        lostBytes += Buffer.byteLength(text)
        return
      }
      stream.write(text, (error) => {
        if (!error) failing = false
      })
    },
    async end(patienceMs) {
      const last = stream
      if (last === undefined || last.closed) return
      const closed = Promise.withResolvers<void>()
      last.once('close', closed.resolve)
      if (!last.destroyed) last.end(loss())
      const patience = setTimeout(() => {
        problem(`Couldn’t write its log within ${patienceMs / 1000} s; the rest of it is lost`)
        closed.resolve()
      }, patienceMs)
      await closed.promise
      clearTimeout(patience)
    },
  }
}

/** The part of a child's log line to show at the terminal: errors, and lines that are not JSON. */
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

/** Splits a stream of text into lines; `end` emits a last one without a line break. */
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
