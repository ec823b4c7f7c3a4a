/**
 * MCP over a pipe: one JSON message a line. The SDK's transport drops lines that are no message
 * without a log, bounds several messages together, reads without back-pressure, and starts the
 * process itself.
 */
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { type JSONRPCMessage, parseJSONRPCMessage, serializeMessage } from '@modelcontextprotocol/client'
import { messageOf } from '@sandlot/shared/base/errors'
import { LineSplitter, TOO_LONG } from '@sandlot/shared/node/line-splitter'
import { withDigits } from '@sandlot/shared/base/exact-numbers'
import { RawResults, type ToolTransport } from './raw-results.ts'
import type { Log } from '../../log.ts'

interface StdioTransportOptions {
  open: () => Promise<BytePipe>
  /** Bytes of one message, in either direction. */
  maxMessageBytes: number
  /** Called with a line that is no message: how many so far, and its beginning. */
  onInvalidLine: (count: number, line: string) => void
}

const SHOWN = 200

export class StdioTransport implements ToolTransport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly rawResults = new RawResults()
  readonly #options: StdioTransportOptions
  #pipe: BytePipe | undefined
  #closed = false
  #closeEmitted = false
  #reading: Promise<void> = Promise.resolve()
  #invalidLines = 0
  /** Why it ended; undefined before that, and after `close`. */
  ended: string | undefined

  constructor(options: StdioTransportOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const pipe = await this.#options.open()
    this.#pipe = pipe
    // Closed while it was being opened.
    if (this.#closed) return pipe.close()
    this.#reading = this.#read(pipe)
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#pipe === undefined || this.#closed) throw new Error(this.ended ?? 'the server is not running')
    const line = Buffer.from(withDigits(serializeMessage(message)))
    if (line.length > this.#options.maxMessageBytes)
      throw new Error(`the message is larger than ${this.#options.maxMessageBytes} bytes`)
    this.rawResults.sent(message)
    await this.#pipe.write(line)
  }

  /** After it `ended` is set, unless `close` ended it. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#pipe?.close()
    await this.#reading
    this.#emitClose()
  }

  #emitClose(): void {
    if (this.#closeEmitted) return
    this.#closeEmitted = true
    this.onclose?.()
  }

  /** Never rejects. */
  async #read(pipe: BytePipe): Promise<void> {
    const lines = createLineReader(this.#options.maxMessageBytes)
    const pace = createMessagePace()
    try {
      for await (const bytes of pipe.stdout) {
        for (const line of lines.push(bytes)) {
          await pace.next()
          if (this.#closed) return
          this.#handleLine(line)
        }
      }
      this.ended ??= await pipe.ending()
    } catch (error) {
      this.ended ??= messageOf(error)
    }
    this.#closed = true
    await pipe.close()
    this.#emitClose()
  }

  #handleLine(line: string): void {
    let message: JSONRPCMessage
    try {
      message = parseJSONRPCMessage(this.rawResults.read(line))
    } catch {
      // Servers print greetings and stray logs: the operator sees them, and the connection stays.
      this.#options.onInvalidLine(++this.#invalidLines, line.slice(0, SHOWN))
      return
    }
    this.onmessage?.(message)
  }
}

/** A line exceeded the limit, so the start of the next one is unknown. */
class LineTooLongError extends Error {
  override readonly name = 'LineTooLong'
  constructor(maxBytes: number) {
    super(`it sent a message of more than ${maxBytes} bytes`)
  }
}

interface LineReader {
  /**
   * The lines that these bytes complete, without line ends and without empty lines. Throws
   * `LineTooLongError`.
   */
  push(bytes: Uint8Array): string[]
}

/** An unterminated last line is dropped. */
export function createLineReader(maxBytes: number): LineReader {
  const splitter = new LineSplitter(maxBytes)
  return {
    push(bytes) {
      const lines = [...splitter.push(bytes)].map((line) => {
        if (line === TOO_LONG) throw new LineTooLongError(maxBytes)
        return line.endsWith('\r') ? line.slice(0, -1) : line
      })
      // An endless line is found before its end.
      if (splitter.tooLong) throw new LineTooLongError(maxBytes)
      return lines.filter((line) => line !== '')
    },
  }
}

/** Messages before other tasks get a turn. */
const BATCH = 64
/** Messages in a window: far more than a proper server sends. */
const MAX_IN_WINDOW = 4_000
const WINDOW_MS = 1_000

interface MessagePace {
  /** Resolves when the next message may be handled. */
  next(): Promise<void>
}

export function createMessagePace(): MessagePace {
  let windowEnds = performance.now() + WINDOW_MS
  let inWindow = 0
  return {
    async next() {
      inWindow++
      if (inWindow % BATCH === 0) await turn()
      const now = performance.now()
      if (now < windowEnds && inWindow > MAX_IN_WINDOW) await sleep(windowEnds - now)
      if (performance.now() < windowEnds) return
      windowEnds = performance.now() + WINDOW_MS
      inWindow = 0
    },
  }
}

export interface BytePipe {
  /**
   * Its output; iterate once. Reading slowly applies back-pressure. May reject when the process is
   * lost.
   */
  readonly stdout: AsyncIterable<Uint8Array>
  /**
   * Resolves when the bytes are sent. Rejects when the server has ended, or reads nothing while too
   * much waits.
   */
  write(bytes: Uint8Array): Promise<void>
  /**
   * Ends it with everything that it started. Resolves when none of it runs. Never rejects.
   * Idempotent.
   */
  close(): Promise<void>
  /** The end, for users: `it ended with code 1`. Call after `stdout` has ended. Never rejects. */
  ending(): Promise<string>
}

/** Bytes that may wait for a server that does not read its stdin. */
export const MAX_UNREAD_BYTES = 8 * 1024 * 1024

export class StdinBlockedError extends Error {
  override readonly name = 'DoesNotRead'
  constructor() {
    super('it does not read what is sent to it')
  }
}

const LINE_CHARS = 500
const LINES = 20
const PER_MS = 10_000

export interface StderrLog {
  push(bytes: Uint8Array): void
  /** Logs the last, unterminated line, and the number of dropped lines. */
  end(): void
  /** The last line, for a message; empty when there was none. */
  lastLine(): string
}

export function createStderrLog(log: Log, server: string, scrub: (text: string) => string): StderrLog {
  const decoder = new TextDecoder()
  let begun = ''
  let last = ''
  let windowEnds = 0
  let inWindow = 0
  let dropped = 0

  const logDropped = (): void => {
    if (dropped > 0) log.info({ server, lines: dropped }, 'more lines of an MCP server were dropped')
    dropped = 0
  }
  const logLine = (line: string): void => {
    const text = scrub(line.slice(0, LINE_CHARS))
      .replaceAll(/\p{Cc}/gu, ' ')
      .trimEnd()
    if (text === '') return
    last = text
    const now = performance.now()
    if (now >= windowEnds) {
      logDropped()
      windowEnds = now + PER_MS
      inWindow = 0
    }
    if (++inWindow > LINES) dropped++
    else log.info({ server, line: text }, 'stderr of an MCP server')
  }
  return {
    push(bytes) {
      const lines = (begun + decoder.decode(bytes, { stream: true })).split('\n')
      begun = (lines.pop() ?? '').slice(0, LINE_CHARS)
      for (const line of lines) logLine(line)
    },
    end() {
      logLine(begun)
      begun = ''
      logDropped()
    },
    lastLine: () => last,
  }
}
