import type { CommandStream, OutputChunk } from '../sandbox.ts'

/** Above so many chunks small pieces are gathered, so that a flood of them costs no more than its bytes. */
const MANY = 256
const GATHERED = 16_384
const SMALL = 4_096

/** A chunk that still has room behind its data. */
interface Gathering {
  chunk: OutputChunk
  buffer: Buffer
}

/**
 * A queue between the connection and whoever iterates. Bounded by the credit that was granted for it, so it has no
 * limit of its own. `onTaken` is called when the consumer comes for the next chunk, hence is done with this one. The
 * order is that of arrival, per stream always, between streams until more than `MANY` chunks wait.
 */
export class OutputQueue implements AsyncIterable<OutputChunk> {
  readonly #chunks: OutputChunk[] = []
  readonly #gathering: Partial<Record<CommandStream, Gathering>> = {}
  readonly #onTaken: (chunk: OutputChunk) => void
  #wake: (() => void) | undefined
  #ended = false
  #error: Error | undefined
  #iterated = false

  constructor(onTaken: (chunk: OutputChunk) => void) {
    this.#onTaken = onTaken
  }

  push(chunk: OutputChunk): void {
    if (this.#chunks.length > MANY && chunk.data.length < SMALL) this.#gather(chunk)
    else {
      // What comes later must not get in front of this one.
      delete this.#gathering[chunk.stream]
      this.#chunks.push(chunk)
    }
    this.#wake?.()
  }

  #gather({ stream, offset, data }: OutputChunk): void {
    const last = this.#gathering[stream]
    if (last) {
      const { chunk, buffer } = last
      const used = chunk.data.length
      // Not after the gap of a cut output.
      if (chunk.offset + used === offset && used + data.length <= buffer.length) {
        buffer.set(data, used)
        chunk.data = buffer.subarray(0, used + data.length)
        return
      }
    }
    const buffer = Buffer.allocUnsafe(GATHERED)
    buffer.set(data)
    const chunk = { stream, offset, data: buffer.subarray(0, data.length) }
    this.#gathering[stream] = { chunk, buffer }
    this.#chunks.push(chunk)
  }

  #next(): OutputChunk | undefined {
    const chunk = this.#chunks.shift()
    if (chunk && this.#gathering[chunk.stream]?.chunk === chunk) delete this.#gathering[chunk.stream]
    return chunk
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
      const chunk = this.#next()
      if (chunk) {
        yield chunk
        this.#onTaken(chunk)
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
}
