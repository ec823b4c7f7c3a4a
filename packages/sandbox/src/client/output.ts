import type { OutputChunk } from '../sandbox.ts'

const MANY = 256
const SMALL = 16_384

/**
 * A queue between the connection and whoever iterates. Bounded by the credit that was granted for it, so it has no
 * limit of its own. `onTaken` is called when the consumer comes for the next chunk, hence is done with this one.
 */
export class OutputQueue implements AsyncIterable<OutputChunk> {
  readonly #chunks: OutputChunk[] = []
  readonly #onTaken: (chunk: OutputChunk) => void
  #wake: (() => void) | undefined
  #ended = false
  #error: Error | undefined
  #iterated = false

  constructor(onTaken: (chunk: OutputChunk) => void) {
    this.#onTaken = onTaken
  }

  push(chunk: OutputChunk): void {
    const last = this.#chunks.at(-1)
    if (
      this.#chunks.length > MANY &&
      last?.stream === chunk.stream &&
      last.data.length + chunk.data.length <= SMALL
    ) {
      // A flood of tiny pieces that nobody takes must not cost more than its bytes.
      last.data = Buffer.concat([last.data, chunk.data])
    } else this.#chunks.push(chunk)
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
      const chunk = this.#chunks.shift()
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
