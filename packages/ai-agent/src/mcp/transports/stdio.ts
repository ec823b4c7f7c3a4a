/**
 * MCP over a pipe: one JSON message a line. Kept beside the SDK's transport because that one drops lines that are no message
 * without a log, bounds several messages together, reads without back-pressure, and starts the process itself.
 */
import {
  type JSONRPCMessage,
  type Transport,
  deserializeMessage,
  serializeMessage,
} from '@modelcontextprotocol/client'
import { messageOf } from '@sandlot/shared/errors'
import type { BytePipe } from './byte-pipe.ts'
import { createLineReader } from './line-reader.ts'
import { createMessagePace } from './message-pace.ts'

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
