/** Small writes to one socket, joined into one system call per turn of the event loop. */
import type { Writable } from 'node:stream'

export class JoinedWrites {
  readonly #stream: Pick<Writable, 'cork' | 'uncork'>
  #timer: NodeJS.Immediate | undefined

  constructor(stream: Pick<Writable, 'cork' | 'uncork'>) {
    this.#stream = stream
  }

  /** Before a write: what is written from here on is sent when the turn of the event loop ends. */
  join(): void {
    if (this.#timer !== undefined) return
    this.#stream.cork()
    this.#timer = setImmediate(() => this.flush())
  }

  /** What was written is sent now: before the connection is cut. */
  flush(): void {
    if (this.#timer === undefined) return
    clearImmediate(this.#timer)
    this.#timer = undefined
    this.#stream.uncork()
  }
}
