/**
 * One WebSocket that is always being kept open. Knows nothing of chats: frames out, frames in, a
 * state to show.
 *
 * A frame that arrives and does not fit the vocabulary is reported and dropped; it is a bug of the
 * service, and no reason to stop listening.
 */
import {
  type ClientFrame,
  type ReadFrame,
  type ServerFrame,
  readServerFrames,
} from '@sandlot/shared/chat/frames'
import { reconnectMs } from './backoff.ts'

export type ConnectionState =
  | { status: 'connecting' }
  | { status: 'open' }
  /** Lost or refused; tried again at `retryAt` (epoch ms). */
  | { status: 'waiting'; retryAt: number; attempt: number }
  /** The browser says that it has no network. */
  | { status: 'offline' }
  | { status: 'closed' }

interface ConnectionHandlers {
  /** In order of arrival. */
  onFrame(frame: ServerFrame): void
  onState(state: ConnectionState): void
  /**
   * Closed before it was open: refused, or unreachable. The caller finds out whether it is signed
   * out.
   */
  onRefused(): void
  /** Text that is not a frame. */
  onInvalidFrame?(problem: string): void
}

/** The service closes with this when the sign-in behind the socket is gone. */
const SIGNED_OUT = 4401

export class Connection {
  readonly #url: string
  readonly #handlers: ConnectionHandlers
  readonly #random: () => number
  #socket: WebSocket | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #attempt = 0
  #state: ConnectionState = { status: 'closed' }

  /** `url`: `ws://…/ws`. Nothing happens before `open()`. */
  constructor(url: string, handlers: ConnectionHandlers, random: () => number = Math.random) {
    this.#url = url
    this.#handlers = handlers
    this.#random = random
  }

  get state(): ConnectionState {
    return this.#state
  }

  open(): void {
    if (this.#state.status === 'closed') this.#connect()
  }

  close(): void {
    this.#drop()
    this.#setState({ status: 'closed' })
  }

  /**
   * Try now instead of at the end of the wait: the network came back, or the tab was looked at
   * again.
   */
  retryNow(): void {
    if (this.#state.status !== 'waiting' && this.#state.status !== 'offline') return
    this.#attempt = 0
    this.#connect()
  }

  /** The network is gone: do not wait for the socket to notice. */
  goOffline(): void {
    if (this.#state.status === 'closed') return
    this.#drop()
    this.#setState({ status: 'offline' })
  }

  /** Replace a socket that may be dead without knowing it, as after the machine slept. */
  renew(): void {
    if (this.#state.status === 'open') this.#connect()
  }

  /**
   * False: there is no open socket, nothing was sent. True says that it was handed over, not that
   * it arrived.
   */
  send(frame: ClientFrame): boolean {
    if (this.#socket === undefined || this.#state.status !== 'open') return false
    this.#socket.send(JSON.stringify(frame))
    return true
  }

  #connect(): void {
    this.#drop()
    this.#attempt++
    this.#setState({ status: 'connecting' })
    const socket = new WebSocket(this.#url)
    this.#socket = socket
    let opened = false
    socket.addEventListener('open', () => {
      if (this.#socket !== socket) return
      opened = true
      this.#attempt = 0
      this.#setState({ status: 'open' })
    })
    socket.addEventListener('message', (message: MessageEvent<unknown>) => {
      if (this.#socket === socket) this.#receive(message.data)
    })
    socket.addEventListener('close', (event) => {
      if (this.#socket !== socket) return
      this.#socket = undefined
      const attempt = Math.max(1, this.#attempt)
      const wait = reconnectMs(attempt, this.#random)
      this.#timer = setTimeout(() => this.#connect(), wait)
      this.#setState({ status: 'waiting', retryAt: Date.now() + wait, attempt })
      if (!opened || event.code === SIGNED_OUT) this.#handlers.onRefused()
    })
  }

  #receive(data: unknown): void {
    for (const read of readMessage(data)) {
      if (read.ok) this.#handlers.onFrame(read.frame)
      else this.#handlers.onInvalidFrame?.(read.problem)
    }
  }

  #drop(): void {
    clearTimeout(this.#timer)
    const socket = this.#socket
    this.#socket = undefined
    socket?.close()
  }

  #setState(state: ConnectionState): void {
    this.#state = state
    this.#handlers.onState(state)
  }
}

function readMessage(data: unknown): ReadFrame[] {
  if (typeof data !== 'string') return [{ ok: false, problem: 'a binary message' }]
  try {
    return readServerFrames(JSON.parse(data))
  } catch (error) {
    return [{ ok: false, problem: String(error) }]
  }
}
