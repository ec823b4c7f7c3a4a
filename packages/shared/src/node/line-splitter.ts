/** Replaces a line over the limit. Later lines are not affected. */
export const TOO_LONG = Symbol('a line that is too long')

const NEWLINE = 10

/** Splits bytes into lines, in bounded memory. */
export class LineSplitter {
  readonly #maxBytes: number
  /** Pieces of the current line; undefined if it is already too long. */
  #pieces: Uint8Array[] | undefined = []
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** True if the current line is over the limit. */
  get tooLong(): boolean {
    return this.#pieces === undefined
  }

  /** Lines completed by `chunk`, without line ends. */
  *push(chunk: Uint8Array): Generator<string | typeof TOO_LONG, void> {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from)
      if (end === -1) {
        // Copied: the chunk may be a view of a reused buffer, or keep a larger one alive.
        return this.#add(chunk.subarray(from), (piece) => new Uint8Array(piece))
      }
      this.#add(chunk.subarray(from, end))
      yield this.#take()
      from = end + 1
    }
  }

  /** Text after the last line end, if any. */
  rest(): string | typeof TOO_LONG | undefined {
    return this.#pieces === undefined || this.#bytes > 0 ? this.#take() : undefined
  }

  #add(piece: Uint8Array, keep: (piece: Uint8Array) => Uint8Array = (same) => same): void {
    this.#bytes += piece.length
    if (this.#bytes > this.#maxBytes) this.#pieces = undefined
    else if (piece.length > 0) this.#pieces?.push(keep(piece))
  }

  #take(): string | typeof TOO_LONG {
    const line = this.#pieces === undefined ? TOO_LONG : Buffer.concat(this.#pieces).toString('utf8')
    this.#pieces = []
    this.#bytes = 0
    return line
  }
}
