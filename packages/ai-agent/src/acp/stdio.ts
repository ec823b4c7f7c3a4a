/**
 * stdin and stdout as the SDK's stream: one message a line, bounded memory whatever the client
 * does.
 */
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import { LineSplitter } from '@sandlot/shared/node/line-splitter'
import { MAX_MESSAGE_BYTES, readMessage } from './incoming.ts'

/**
 * Messages that are read while the client does not take what it is sent. Then it has to read first.
 */
const UNREAD_LIMIT = 256

/** The stream ends when `input` ends, and when `output` is closed. */
export function stdioStream(input: Readable, output: Writable): Stream {
  const writer = new LineWriter(output)
  const messages = messagesOf(input, writer)
  return {
    readable: new ReadableStream({
      async pull(controller) {
        const next = await messages.next()
        if (next.done === true) controller.close()
        else controller.enqueue(next.value)
      },
      cancel: () => void messages.return(),
    }),
    writable: new WritableStream({
      write: (message: AnyMessage) => writer.write(message),
    }),
  }
}

async function* messagesOf(input: Readable, writer: LineWriter): AsyncGenerator<AnyMessage, void> {
  const lines = new LineSplitter(MAX_MESSAGE_BYTES)
  const read = async (line: ReturnType<LineSplitter['rest']>): Promise<AnyMessage[]> => {
    if (line === undefined || (typeof line === 'string' && line.trim() === '')) return []
    const incoming = readMessage(line)
    if ('message' in incoming) return [incoming.message]
    await writer.write(incoming.answer)
    return []
  }
  let unread = 0
  for await (const chunk of input as AsyncIterable<Uint8Array>) {
    for (const line of lines.push(chunk)) {
      for (const message of await read(line)) {
        unread = writer.stuck ? unread + 1 : 0
        if (unread > UNREAD_LIMIT) await writer.room()
        yield message
      }
    }
  }
  yield* await read(lines.rest())
}

class LineWriter {
  readonly #output: Writable
  #room: Promise<unknown> | undefined
  #broken: Error | undefined

  constructor(output: Writable) {
    this.#output = output
    // The next write rejects; without a listener the error would end the process.
    output.on('error', (error) => (this.#broken = error))
  }

  /** The client does not take what was written. */
  get stuck(): boolean {
    return this.#room !== undefined
  }

  /** Resolves when it does again. Rejects when it never will. */
  async room(): Promise<void> {
    await this.#room
  }

  /** Resolves when there is room for the next one. Rejects when the output is closed. */
  async write(message: AnyMessage): Promise<void> {
    if (this.#broken !== undefined) throw this.#broken
    const more = this.#output.write(`${JSON.stringify(message)}\n`)
    if (more) return
    const left = new AbortController()
    const closed = once(this.#output, 'close', { signal: left.signal }).then(() => {
      throw this.#broken ?? new Error('Nobody reads what the agent writes.')
    })
    const drained = once(this.#output, 'drain', { signal: left.signal })
    this.#room = Promise.race([drained, closed])
    try {
      await this.#room
    } finally {
      this.#room = undefined
      left.abort()
    }
  }
}
