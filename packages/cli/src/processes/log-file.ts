import { createWriteStream, existsSync, mkdirSync, renameSync, statSync, type WriteStream } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '@sandlot/shared/base/errors'

const ROTATE_BYTES = 16 * 1024 * 1024
/** Levels as pino numbers them. */
const WARNING = 40
const ERROR = 50
/** Bytes that may wait for a slow or hanging disk, so that memory stays bounded. */
const WAITING_BYTES = 4 * 1024 * 1024

/**
 * Append to a log file. One that has grown large is kept once under `.1`, so that logs never fill a
 * disk.
 */
function openLog(file: string): WriteStream {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  if (existsSync(file) && statSync(file).size > ROTATE_BYTES) renameSync(file, `${file}.1`)
  return createWriteStream(file, { flags: 'a', mode: 0o600 })
}

interface Log {
  /**
   * In the order given. What a full disk refuses is lost; the next write tries again. So are writes
   * while 4 MiB wait for the disk; after that a line of the log has their size.
   */
  write(text: string): void
  /**
   * Resolves when all of it is in the file, or after `patienceMs`: a disk may hang for ever. Never
   * rejects.
   */
  end(patienceMs: number): Promise<void>
}

/**
 * A log whose owner continues when it cannot be written. `problem` is called once, and again only
 * after a write that succeeded.
 */
export function keepLog(file: string, problem: (text: string) => void): Log {
  let failing = false
  let lostBytes = 0
  const fail = (error: unknown): void => {
    if (!failing) problem(`Its log cannot be written: ${messageOf(error)}`)
    failing = true
  }
  const open = (): WriteStream | undefined => {
    try {
      // Without a listener a full disk would end the launcher, and with it everything that it
      // watches.
      return openLog(file).on('error', fail)
    } catch (error) {
      fail(error)
      return undefined
    }
  }
  /** As the children write their own lines. */
  const loss = (): string => {
    if (lostBytes === 0) return ''
    const msg = `${lostBytes} bytes of this log were lost here: the disk was too slow`
    lostBytes = 0
    return `${JSON.stringify({ level: WARNING, time: Date.now(), msg })}\n`
  }
  let stream = open()
  return {
    write(text) {
      // An error destroys a stream, and then it takes nothing any more.
      if (stream === undefined || stream.destroyed) stream = open()
      if (stream === undefined) return
      if (lostBytes > 0 && stream.writableLength === 0) stream.write(loss())
      if (lostBytes > 0 || stream.writableLength > WAITING_BYTES) {
        if (lostBytes === 0)
          fail(new Error('the disk is too slow or hangs, and what is said meanwhile is lost'))
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
        problem(`Its log was not written within ${patienceMs / 1000} s; the rest of it is lost`)
        closed.resolve()
      }, patienceMs)
      await closed.promise
      clearTimeout(patience)
    },
  }
}

/**
 * What of a child's log line a person at the terminal should see: errors, and whatever is not a log
 * line at all (a stack trace, a warning of the runtime). Undefined for everything else.
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

/**
 * Cuts a stream of text into lines, whatever its chunks; `end` gives the last one without a line
 * break.
 */
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
