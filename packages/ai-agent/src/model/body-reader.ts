/** The bytes of an answer, with a limit on silence. The clock only runs while we wait for the provider, never while our reader is slow. */
import { modelError } from './errors.ts'

export interface SilenceLimits {
  /** Milliseconds without any byte. */
  idleMs: number
  /** Milliseconds without data: bytes that only keep the connection alive do not count. */
  progressMs: number
}

export class BodyReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #limits: SilenceLimits
  #withoutData = 0

  constructor(body: ReadableStream<Uint8Array>, limits: SilenceLimits) {
    this.#reader = body.getReader()
    this.#limits = limits
  }

  /** Data has come: not only bytes. */
  progressed(): void {
    this.#withoutData = 0
  }

  /**
   * The next bytes, or undefined at the end. Throws `ModelError('timeout')`; or what the connection threw. `atMostMs` is a
   * further limit, at which it answers `late`.
   */
  async read(atMostMs = Number.POSITIVE_INFINITY): Promise<Uint8Array | undefined | 'late'> {
    const started = performance.now()
    const { idleMs, progressMs } = this.#limits
    const left = Math.min(idleMs, progressMs - this.#withoutData, atMostMs)
    const { promise: alarm, resolve: ring } = Promise.withResolvers<'late'>()
    const timer = setTimeout(() => ring('late'), Math.max(0, left))
    try {
      const reading = this.#reader.read()
      const result = await Promise.race([reading, alarm])
      this.#withoutData += performance.now() - started
      if (result !== 'late') return result.value
      // Nobody waits for this read any more; cancelling the body ends it.
      reading.catch(() => undefined)
      if (left === atMostMs) return 'late'
      const seconds = Math.round((left === idleMs ? idleMs : progressMs) / 1_000)
      throw modelError(
        'timeout',
        left === idleMs
          ? `The model provider sent nothing for ${seconds} s.`
          : `The model provider sent only signs of life for ${seconds} s, and no answer.`,
      )
    } finally {
      clearTimeout(timer)
    }
  }

  /** Close the connection. Never rejects. */
  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined)
  }
}
