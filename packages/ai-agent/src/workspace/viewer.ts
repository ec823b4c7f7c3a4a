/** The one page that shows a terminal: what it gets ahead of what it has shown is bounded. */
import { type TerminalNotice, TERMINAL_WINDOW_BYTES, terminalAsk } from '@sandlot/shared/workspace/terminals'
import { parseJson } from '@sandlot/shared/base/json'
import type { Scrollback } from './scrollback.ts'

const PIECE_BYTES = 64 * 1024
/** Bytes of keys that wait for the program before the page is read no further. */
const MOST_TYPED_BYTES = 64 * 1024
/** A message that is not one of ours. */
const UNSUPPORTED = 1003

/** The part of a WebSocket that a viewer needs. */
export interface ViewerSocket {
  readonly isPaused: boolean
  send(data: Uint8Array | string): void
  close(code: number, reason: string): void
  pause(): void
  resume(): void
  on(event: 'message', heard: (data: Buffer, isBinary: boolean) => void): unknown
  once(event: 'close', heard: () => void): unknown
}

interface ViewerParts {
  socket: ViewerSocket
  scrollback: Scrollback
  /** Offset of the first byte that the page does not have. */
  from: number
  /** Keys. Resolves when the program may have more. */
  type: (keys: Uint8Array) => Promise<void>
  resize: (size: { columns: number; rows: number }) => void
  left: () => void
}

export class Viewer {
  readonly #parts: ViewerParts
  #sent = 0
  #shown = 0
  #open = true
  #typed = 0
  #caughtUp: (() => void) | undefined

  constructor(parts: ViewerParts) {
    this.#parts = parts
    const { socket, scrollback, from } = parts
    const isRetained = from >= scrollback.start && from <= scrollback.end
    this.#begin(isRetained ? from : scrollback.start)
    socket.on('message', (data, isBinary) => this.#heard(data, isBinary))
    socket.once('close', () => this.#leave())
    this.#send()
  }

  /** Resolves when everything that is kept was sent, or the page is gone. */
  caughtUp(): Promise<void> | undefined {
    this.#send()
    if (!this.#open || this.#sent === this.#parts.scrollback.end) return undefined
    return new Promise((resolve) => {
      this.#caughtUp = resolve
    })
  }

  close(code: number, reason: string, last?: TerminalNotice): void {
    if (!this.#open) return
    if (last !== undefined) this.#say(last)
    this.#parts.socket.close(code, reason)
    this.#leave()
  }

  #send(): void {
    const { socket, scrollback } = this.#parts
    if (this.#open && this.#sent < scrollback.start) this.#begin(scrollback.start)
    while (this.#open && this.#sent < scrollback.end && this.#sent - this.#shown < TERMINAL_WINDOW_BYTES) {
      const piece = scrollback.from(this.#sent, PIECE_BYTES)
      socket.send(piece)
      this.#sent += piece.length
    }
    if (this.#open && this.#sent < scrollback.end) return
    this.#caughtUp?.()
    this.#caughtUp = undefined
  }

  #begin(offset: number): void {
    this.#sent = offset
    this.#shown = offset
    this.#say({ type: 'ready', offset })
  }

  #say(notice: TerminalNotice): void {
    this.#parts.socket.send(JSON.stringify(notice))
  }

  #heard(data: Buffer, isBinary: boolean): void {
    if (!this.#open) return
    if (isBinary) return this.#type(data)
    const ask = terminalAsk.safeParse(parseJson(data.toString('utf8'))).data
    if (ask === undefined) return this.close(UNSUPPORTED, 'no message of a terminal')
    if (ask.type === 'resize') return this.#parts.resize({ columns: ask.columns, rows: ask.rows })
    this.#shown = Math.min(this.#sent, Math.max(this.#shown, ask.offset))
    this.#send()
  }

  #type(keys: Buffer): void {
    const { socket, type } = this.#parts
    this.#typed += keys.length
    if (this.#typed > MOST_TYPED_BYTES) socket.pause()
    const taken = (): void => {
      this.#typed -= keys.length
      if (socket.isPaused && this.#typed <= MOST_TYPED_BYTES) socket.resume()
    }
    // It rejects when the terminal has ended, which `ended` says.
    type(keys).then(taken, taken)
  }

  #leave(): void {
    if (!this.#open) return
    this.#open = false
    this.#parts.left()
    this.#caughtUp?.()
    this.#caughtUp = undefined
  }
}
