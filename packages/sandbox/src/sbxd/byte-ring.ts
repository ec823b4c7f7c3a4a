const FIRST_BYTES = 2_048

/** Bytes that wait, in memory that is used again: a ring that grows when it is full and never shrinks. */
export class ByteRing {
  #memory: Buffer = Buffer.alloc(0)
  #from = 0
  #length = 0

  /** Copies them behind what is there. What `front` gave stays as it is until it is dropped. */
  add(bytes: Uint8Array): void {
    const length = this.#length + bytes.length
    if (length > this.#memory.length) this.#grow(length)
    const at = (this.#from + this.#length) & (this.#memory.length - 1)
    const first = Math.min(bytes.length, this.#memory.length - at)
    this.#memory.set(bytes.subarray(0, first), at)
    this.#memory.set(bytes.subarray(first), 0)
    this.#length = length
  }

  /** The oldest bytes, at most `most`, fewer where the ring begins anew: a view. */
  front(most: number): Buffer {
    const length = Math.min(most, this.#length, this.#memory.length - this.#from)
    return this.#memory.subarray(this.#from, this.#from + length)
  }

  drop(bytes: number): void {
    this.#length -= bytes
    this.#from = this.#length === 0 ? 0 : (this.#from + bytes) & (this.#memory.length - 1)
  }

  #grow(need: number): void {
    let size = Math.max(FIRST_BYTES, this.#memory.length)
    while (size < need) size *= 2
    const memory = Buffer.allocUnsafe(size)
    const head = this.front(this.#length)
    memory.set(head)
    memory.set(this.#memory.subarray(0, this.#length - head.length), head.length)
    this.#memory = memory
    this.#from = 0
  }
}
