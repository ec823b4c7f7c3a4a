/**
 * JSON-RPC over a WebSocket: one message per text message, as streams with back-pressure both ways.
 */
import type { IncomingMessage } from 'node:http'
import type { Writable } from 'node:stream'
import type { WebSocket } from 'ws'
import { Recent } from '../async/recent.ts'

/** Unsent bytes before the next message waits. */
const MAX_WAITING_BYTES = 1024 * 1024

interface JsonRpcSocketOptions<Message> {
  /**
   * Called with each message until the reader cancels; passes messages for the reader to `deliver`.
   * Must not throw.
   */
  receive: (data: Buffer, isBinary: boolean, deliver: (message: Message) => void) => void
  /** The server's connection of `socket`. Absent: `socket` is a client that is not open yet. */
  connection?: Writable
  /** Unread messages before `socket` is paused. Absent: its owner pauses it. */
  maxWaiting?: number
}

export interface JsonRpcSocket<Message> {
  /** Ends when the socket closes. Cancelling it closes the socket. */
  readable: ReadableStream<Message>
  /** Closing it closes the socket; aborting it sends written messages and terminates the socket. */
  writable: WritableStream<Message>
  /**
   * Writes a message at once, before those that still wait in `writable`. Undefined: the next one
   * may follow, and a failure is an error of `writable`; else resolves when it may, and rejects
   * when the socket has closed.
   */
  send(message: Message): Promise<void> | undefined
  /** Sends written messages before the socket is terminated. */
  flush(): void
}

export function jsonRpcSocket<Message>(
  socket: WebSocket,
  { receive, connection, maxWaiting }: JsonRpcSocketOptions<Message>,
): JsonRpcSocket<Message> {
  let writes = connection === undefined ? undefined : new JoinedWrites(connection)
  if (connection === undefined)
    socket.once('upgrade', (response: IncomingMessage) => {
      writes = new JoinedWrites(response.socket)
    })
  let open = true
  const readable = new ReadableStream<Message>(
    {
      start(controller) {
        const deliver = (message: Message): void => {
          controller.enqueue(message)
          if (maxWaiting !== undefined && (controller.desiredSize ?? 0) <= 0) socket.pause()
        }
        socket.on('message', (data: Buffer, isBinary) => {
          if (open) receive(data, isBinary, deliver)
        })
        // Always followed by `close`.
        socket.on('error', () => socket.terminate())
        socket.once('close', () => {
          if (open) controller.close()
          open = false
        })
      },
      pull() {
        if (maxWaiting !== undefined && socket.isPaused) socket.resume()
      },
      cancel() {
        open = false
        socket.close()
      },
    },
    new CountQueuingStrategy({ highWaterMark: maxWaiting ?? 1 }),
  )
  let onSent: (error?: Error | null) => void
  const send = (message: Message): Promise<void> | undefined => {
    writes?.join()
    return sendText(socket, textOf(message), onSent)
  }
  const writable = new WritableStream<Message>({
    start(controller) {
      onSent = (error) => {
        if (error != null) controller.error(error)
      }
    },
    write: send,
    close: () => socket.close(),
    abort() {
      writes?.flush()
      socket.terminate()
    },
  })
  return { readable, writable, send, flush: () => writes?.flush() }
}

function sendText(
  socket: WebSocket,
  text: string,
  onSent: (error?: Error | null) => void,
): Promise<void> | undefined {
  if (socket.bufferedAmount >= MAX_WAITING_BYTES)
    return new Promise<void>((resolve, reject) => {
      socket.send(text, (error) => (error == null ? resolve() : reject(error)))
    })
  socket.send(text, onSent)
  return undefined
}

/** Cached text of the last notifications, for those that several connections get. */
const notifications = new Recent<object, { method: unknown; text: string }>()

function textOf(message: unknown): string {
  const write = (): string => JSON.stringify(message)
  if (typeof message !== 'object' || message === null || !('method' in message) || 'id' in message)
    return write()
  const { method } = message
  const params = 'params' in message ? message.params : undefined
  if (typeof params !== 'object' || params === null) return write()
  const cached = notifications.get(params, () => ({ method, text: write() }))
  return cached.method === method ? cached.text : write()
}

/**
 * Small writes to one connection, joined into one system call: those of one callback of the event
 * loop and its microtasks. Not of a whole turn: events that are collected for a turn are written at
 * its end, and would wait for the end of the next one.
 */
class JoinedWrites {
  readonly #connection: Pick<Writable, 'cork' | 'uncork'>
  #corked = false

  constructor(connection: Pick<Writable, 'cork' | 'uncork'>) {
    this.#connection = connection
  }

  /** Call before a write: it is sent with later ones after the current microtasks. */
  join(): void {
    if (this.#corked) return
    this.#corked = true
    this.#connection.cork()
    process.nextTick(() => this.flush())
  }

  flush(): void {
    if (!this.#corked) return
    this.#corked = false
    this.#connection.uncork()
  }
}
