/** Bytes → lines, for a protocol of one message a line. Linear in the bytes, and bounded whatever comes. */
import { Buffer } from 'node:buffer'

/** In place of a line that was longer than the limit. The lines behind it come as ever. */
export const TOO_LONG = Symbol('a line that is too long')

const NEWLINE = 10

export class LineSplitter {
  readonly #maxBytes: number
  /** What there is of the current line, undefined when it is too long already. */
  #pieces: Uint8Array[] | undefined = []
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The lines that `chunk` ends, without their ends. */
  *push(chunk: Uint8Array): Generator<string | typeof TOO_LONG, void> {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from)
      this.#add(chunk.subarray(from, end === -1 ? chunk.length : end))
      if (end === -1) return
      yield this.#take()
      from = end + 1
    }
  }

  /** What stands behind the last end of a line, if anything does. */
  rest(): string | typeof TOO_LONG | undefined {
    return this.#pieces === undefined || this.#bytes > 0 ? this.#take() : undefined
  }

  #add(piece: Uint8Array): void {
    this.#bytes += piece.length
    if (this.#bytes > this.#maxBytes) this.#pieces = undefined
    else if (piece.length > 0) this.#pieces?.push(piece)
  }

  #take(): string | typeof TOO_LONG {
    const line = this.#pieces === undefined ? TOO_LONG : Buffer.concat(this.#pieces).toString('utf8')
    this.#pieces = []
    this.#bytes = 0
    return line
  }
}
