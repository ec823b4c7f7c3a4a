/** The last bytes of a terminal, by their offset in everything that it has shown. */
export class Scrollback {
  readonly #most: number
  #pieces: Uint8Array[] = []
  #bytes = 0
  #end = 0

  constructor(mostBytes: number) {
    this.#most = mostBytes
  }

  /** Offset of the first byte that is kept. */
  get start(): number {
    return this.#end - this.#bytes
  }

  get end(): number {
    return this.#end
  }

  /** `offset`: of the piece. What was kept before a gap is dropped. */
  push(offset: number, piece: Uint8Array): void {
    if (offset !== this.#end) {
      this.#pieces = []
      this.#bytes = 0
      this.#end = offset
    }
    this.#pieces.push(piece)
    this.#bytes += piece.length
    this.#end += piece.length
    let over = this.#bytes - this.#most
    let gone = 0
    for (; over > 0; gone++) {
      const first = this.#pieces[gone]
      if (first === undefined) break
      if (first.length > over) {
        this.#pieces[gone] = first.subarray(over)
        this.#bytes -= over
        break
      }
      over -= first.length
      this.#bytes -= first.length
    }
    this.#pieces.splice(0, gone)
  }

  /** At most `most` bytes from `offset` on, which is kept; none at the end. */
  from(offset: number, most: number): Uint8Array {
    let at = this.start
    const found: Uint8Array[] = []
    let left = most
    for (const piece of this.#pieces) {
      const end = at + piece.length
      if (end > offset && left > 0) {
        const part = piece.subarray(Math.max(0, offset - at), Math.max(0, offset - at) + left)
        found.push(part)
        left -= part.length
      }
      at = end
    }
    const [only] = found
    return found.length === 1 && only !== undefined ? only : Buffer.concat(found)
  }
}
