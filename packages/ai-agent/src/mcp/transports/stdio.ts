/**
 * MCP over a pipe: one JSON message a line. Kept beside the SDK's transport because that one drops lines that are no message
 * without a log, bounds several messages together, reads without back-pressure, and starts the process itself.
 */
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import {
  deserializeMessage,
  type JSONRPCMessage,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/client'
import { messageOf } from '@sandlot/shared/errors'
import type { ToolLog } from '../../tools/tool.ts'

export interface StdioTransportOptions {
  open: () => Promise<BytePipe>
  /** Bytes of one message, in either direction. */
  maxMessageBytes: number
  /** Told of lines that are no messages: how many so far, and the beginning of this one. */
  onGarbage: (count: number, line: string) => void
}

const SHOWN = 200

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #options: StdioTransportOptions
  #pipe: BytePipe | undefined
  #closed = false
  #told = false
  #reading: Promise<void> = Promise.resolve()
  #garbage = 0
  /** Why it is over, in words; undefined while it is not, or when we closed it. */
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
    const line = Buffer.from(serializeMessage(message))
    if (line.length > this.#options.maxMessageBytes)
      throw new Error(`the message is larger than ${this.#options.maxMessageBytes} bytes`)
    await this.#pipe.write(line)
  }

  /** After it `ended` says why, when it was not we who ended it. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#pipe?.close()
    await this.#reading
    this.#tellClosed()
  }

  #tellClosed(): void {
    if (this.#told) return
    this.#told = true
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
          this.#take(line.toString('utf8'))
        }
      }
      this.ended ??= await pipe.ending()
    } catch (error) {
      this.ended ??= messageOf(error)
    }
    this.#closed = true
    await pipe.close()
    this.#tellClosed()
  }

  #take(line: string): void {
    let message: JSONRPCMessage
    try {
      message = deserializeMessage(line)
    } catch {
      // Servers print greetings and stray logs. What they said is the operator's to see, not an error of ours.
      this.#options.onGarbage(++this.#garbage, line.slice(0, SHOWN))
      return
    }
    this.onmessage?.(message)
  }
}

/** A line was longer than allowed. Where the next one begins cannot be trusted either. */
export class LineTooLong extends Error {
  override readonly name = 'LineTooLong'
  constructor(maxBytes: number) {
    super(`it sent a message of more than ${maxBytes} bytes`)
  }
}

export interface LineReader {
  /** The lines that these bytes complete, without their ends; empty lines are left out. @throws LineTooLong */
  push(bytes: Uint8Array): Buffer[]
}

const NEWLINE = 10
const RETURN = 13

/** A line without end at the end of everything is no line. */
export function createLineReader(maxBytes: number): LineReader {
  let pieces: Uint8Array[] = []
  let held = 0

  return {
    push(bytes) {
      const lines: Buffer[] = []
      let from = 0
      for (;;) {
        const end = bytes.indexOf(NEWLINE, from)
        const piece = bytes.subarray(from, end < 0 ? bytes.length : end)
        held += piece.length
        if (held > maxBytes) throw new LineTooLong(maxBytes)
        if (end < 0) {
          // Copied: the chunk may be a view of a buffer that is used again, or keep a much larger one alive.
          if (piece.length > 0) pieces.push(Uint8Array.from(piece))
          return lines
        }
        const line = Buffer.concat([...pieces, piece])
        const text = line.at(-1) === RETURN ? line.subarray(0, -1) : line
        if (text.length > 0) lines.push(text)
        pieces = []
        held = 0
        from = end + 1
      }
    },
  }
}

/** Handled before anything else gets its turn. */
const TOGETHER = 64
/** In a window. Far more than any honest server sends. */
const MOST = 4_000
const WINDOW_MS = 1_000

export interface MessagePace {
  /** Wait until the next message may be handled. */
  next(): Promise<void>
}

export function createMessagePace(): MessagePace {
  let windowEnds = performance.now() + WINDOW_MS
  let inWindow = 0
  return {
    async next() {
      inWindow++
      if (inWindow % TOGETHER === 0) await turn()
      const now = performance.now()
      if (now < windowEnds && inWindow > MOST) await sleep(windowEnds - now)
      if (performance.now() < windowEnds) return
      windowEnds = performance.now() + WINDOW_MS
      inWindow = 0
    },
  }
}

export interface BytePipe {
  /** What it prints; iterated once. Reading slowly makes it wait. Ends when it ends; may reject when it is lost. */
  readonly stdout: AsyncIterable<Uint8Array>
  /** Resolves when it is on its way. Rejects when the server has ended, or reads nothing while too much waits for it. */
  write(bytes: Uint8Array): Promise<void>
  /** End it, with everything that it started. Resolves when nothing of it runs any more. Never rejects; may be called again. */
  close(): Promise<void>
  /** After `stdout` has ended: how, in words for a person: `it ended with code 1`. Never rejects. */
  ending(): Promise<string>
}

/** Bytes that may wait for a server that does not read its stdin. */
export const MAX_UNREAD = 8 * 1024 * 1024

export class DoesNotRead extends Error {
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
  /** The last line begun, and how many were left out. */
  end(): void
  /** The last thing it said, for a message; empty when it said nothing. */
  lastLine(): string
}

export function createStderrLog(log: ToolLog, server: string, scrub: (text: string) => string): StderrLog {
  const decoder = new TextDecoder()
  let begun = ''
  let last = ''
  let windowEnds = 0
  let inWindow = 0
  let leftOut = 0

  const tellLeftOut = (): void => {
    if (leftOut > 0) log.info({ server, lines: leftOut }, 'more lines of an MCP server were left out')
    leftOut = 0
  }
  const say = (line: string): void => {
    const text = scrub(line.slice(0, LINE_CHARS))
      .replaceAll(/\p{Cc}/gu, ' ')
      .trimEnd()
    if (text === '') return
    last = text
    const now = performance.now()
    if (now >= windowEnds) {
      tellLeftOut()
      windowEnds = now + PER_MS
      inWindow = 0
    }
    if (++inWindow > LINES) leftOut++
    else log.info({ server, line: text }, 'an MCP server says')
  }
  return {
    push(bytes) {
      const lines = (begun + decoder.decode(bytes, { stream: true })).split('\n')
      begun = (lines.pop() ?? '').slice(0, LINE_CHARS)
      for (const line of lines) say(line)
    },
    end() {
      say(begun)
      begun = ''
      tellLeftOut()
    },
    lastLine: () => last,
  }
}
