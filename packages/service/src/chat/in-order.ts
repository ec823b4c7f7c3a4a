/**
 * Work under one key happens in the order in which it was asked for; work under different keys side
 * by side.
 */
import { SandlotError } from '@sandlot/shared/errors'

interface Line {
  /** Resolves when the last one has ended, well or not. */
  last: Promise<void>
  length: number
}

export class InOrder {
  readonly #most: number
  readonly #lines = new Map<string, Line>()

  /** `most`: how much may wait and run under one key. */
  constructor(most: number) {
    this.#most = most
  }

  /**
   * Begins `work` when everything that was asked for before under `key` has ended. Rejects with
   * what `work` throws, which holds up nothing behind it, and at once with `rate_limited` when too
   * much waits.
   */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(key) ?? { last: Promise.resolve(), length: 0 }
    if (line.length >= this.#most)
      throw new SandlotError('rate_limited', 'Too much was sent at once. Wait for the answers, then go on.')
    this.#lines.set(key, line)
    line.length++
    const done = line.last.then(work)
    const leave = (): void => {
      line.length--
      if (line.length === 0) this.#lines.delete(key)
    }
    line.last = done.then(leave, leave)
    return done
  }
}
