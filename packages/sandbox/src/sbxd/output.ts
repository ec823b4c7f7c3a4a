import type { CommandStream, OutputChunk } from '../sandbox.ts'

/**
 * Above so many runs a stream's next bytes join its last run, so that a flood of tiny pieces costs
 * no more than its bytes.
 */
const MANY = 256
/** Maximum size of a chunk. */
const MOST_BYTES = 256 * 1024

/** Consecutive bytes of one stream in its ring. */
interface Run {
  stream: CommandStream
  offset: number
  length: number
}

/**
 * Queue between connection and consumer, bounded by the granted credit. `onTaken` is called when
 * the consumer requests the next chunk, hence has finished this one. Order is that of arrival,
 * always per stream, between streams until more than `MANY` runs are queued. With `lend` a chunk's
 * memory is reused after `onTaken`; otherwise each chunk has its own.
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
    // Not across the gap of a cut output, and ahead of later bytes of the other stream only when
    // very many runs are queued.
    const joins = last !== undefined && last.offset + last.length === offset
    if (joins && (last === this.#runs.at(-1) || this.#runs.length > MANY)) last.length += bytes.length
    else {
      const run = { stream, offset, length: bytes.length }
      this.#last[stream] = run
      this.#runs.push(run)
    }
    this.#wake?.()
  }

  /** Ends the queue: queued chunks are still delivered, then the error is thrown, if any. */
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

/** Buffered bytes in reused memory: a ring that grows when it is full and never shrinks. */
class ByteRing {
  #memory: Buffer = Buffer.alloc(0)
  #from = 0
  #length = 0

  /** Appends a copy. A view from `front` stays unchanged until it is dropped. */
  add(bytes: Uint8Array): void {
    const length = this.#length + bytes.length
    if (length > this.#memory.length) this.#grow(length)
    const at = (this.#from + this.#length) & (this.#memory.length - 1)
    const first = Math.min(bytes.length, this.#memory.length - at)
    this.#memory.set(bytes.subarray(0, first), at)
    this.#memory.set(bytes.subarray(first), 0)
    this.#length = length
  }

  /** A view of the oldest bytes, at most `most`, fewer at the ring's wrap. */
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
