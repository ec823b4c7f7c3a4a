import type { CommandStream, OutputChunk } from '../sandbox.ts'

/**
 * Above so many runs a stream's next bytes join its last run, so that a flood of tiny pieces costs
 * no more than its bytes.
 */
const MANY = 256
/** What is handed over at once. */
const MOST_BYTES = 256 * 1024

/** Bytes of one stream that arrived one after the other and wait in its ring. */
interface Run {
  stream: CommandStream
  offset: number
  length: number
}

/**
 * A queue between the connection and the consumer. Bounded by the credit that was granted for
 * it, so it has no limit of its own. `onTaken` is called when the consumer comes for the next
 * chunk, hence is done with this one. The order is that of arrival, per stream always, between
 * streams until more than `MANY` runs wait. With `lend` a chunk's bytes are the queue's own and are
 * used again after `onTaken`; otherwise each chunk has its own.
 */
export class OutputQueue implements AsyncIterable<OutputChunk> {
  readonly #runs: Run[] = []
  readonly #last: Partial<Record<CommandStream, Run>> = {}
  readonly #rings: Record<CommandStream, ByteRing> = { stdout: new ByteRing(), stderr: new ByteRing() }
  readonly #onTaken: (stream: CommandStream, upto: number) => void
  readonly #lend: boolean
  #wake: (() => void) | undefined
  #ended = false
  #error: Error | undefined
  #iterated = false

  constructor(onTaken: (stream: CommandStream, upto: number) => void, lend = false) {
    this.#onTaken = onTaken
    this.#lend = lend
  }

  /** Copies the bytes. */
  push(stream: CommandStream, offset: number, bytes: Uint8Array): void {
    this.#rings[stream].add(bytes)
    const last = this.#last[stream]
    // Not over the gap of a cut output, and in front of what came meanwhile only when that is very
    // much.
    const joins = last !== undefined && last.offset + last.length === offset
    if (joins && (last === this.#runs.at(-1) || this.#runs.length > MANY)) last.length += bytes.length
    else {
      const run = { stream, offset, length: bytes.length }
      this.#last[stream] = run
      this.#runs.push(run)
    }
    this.#wake?.()
  }

  /** No more chunks; what is queued is still delivered, then the error is thrown, if any. */
  end(error?: Error): void {
    this.#ended = true
    this.#error = error
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<OutputChunk, void, undefined> {
    if (this.#iterated) throw new Error('The output of a command can be iterated only once')
    this.#iterated = true
    for (;;) {
      const run = this.#runs[0]
      if (run) {
        const { stream, offset } = run
        const bytes = this.#rings[stream].front(Math.min(run.length, MOST_BYTES))
        yield { stream, offset, data: this.#lend ? bytes : Buffer.from(bytes) }
        this.#drop(run, bytes.length)
        this.#onTaken(stream, offset + bytes.length)
      } else if (this.#ended) {
        if (this.#error) throw this.#error
        return
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#wake = undefined
      }
    }
  }

  #drop(run: Run, bytes: number): void {
    this.#rings[run.stream].drop(bytes)
    run.offset += bytes
    run.length -= bytes
    if (run.length > 0) return
    this.#runs.shift()
    if (this.#last[run.stream] === run) delete this.#last[run.stream]
  }
}

const FIRST_BYTES = 2_048

/**
 * Bytes that wait, in memory that is used again: a ring that grows when it is full and never
 * shrinks.
 */
class ByteRing {
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
