/**
 * Frames of one browser on their way to the agent: a bounded number and length at once. While more
 * are there, the socket is not read, so that the browser waits.
 */
import { MAX_FRAME_BYTES } from '@sandlot/shared/chat/frames'
import type { WebSocket } from 'ws'

/** More than a person reaches. */
const MOST_FRAMES = 64
const MOST_CHARS = 2 * MAX_FRAME_BYTES

export class FrameIntake {
  readonly #socket: Pick<WebSocket, 'pause' | 'resume' | 'isPaused'>
  readonly #handle: (text: string) => Promise<void>
  /** Frames that were read together with the last one that had room. */
  #waiting: string[] = []
  #frames = 0
  #chars = 0

  /** `handle` resolves when the frame is passed on or refused. Must not reject. */
  constructor(
    socket: Pick<WebSocket, 'pause' | 'resume' | 'isPaused'>,
    handle: (text: string) => Promise<void>,
  ) {
    this.#socket = socket
    this.#handle = handle
  }

  take(text: string): void {
    this.#waiting.push(text)
    this.#startAll()
  }

  /** Drops the frames that wait. */
  close(): void {
    this.#waiting = []
  }

  #startAll(): void {
    let started = 0
    for (const text of this.#waiting) {
      const isFull = this.#frames >= MOST_FRAMES || this.#chars + text.length > MOST_CHARS
      if (isFull && this.#frames > 0) break
      started++
      void this.#start(text)
    }
    this.#waiting.splice(0, started)
    if (this.#waiting.length > 0) this.#socket.pause()
    else if (this.#socket.isPaused) this.#socket.resume()
  }

  async #start(text: string): Promise<void> {
    this.#frames++
    this.#chars += text.length
    await this.#handle(text)
    this.#frames--
    this.#chars -= text.length
    this.#startAll()
  }
}
