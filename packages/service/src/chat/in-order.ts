/**
 * Work under one key happens in the order in which it was asked for, and a bounded amount of it
 * waits; work under different keys side by side.
 */
import { createKeyedLock } from '@sandlot/shared/async/keyed-lock'
import { SandlotError } from '@sandlot/shared/errors'

export class InOrder {
  readonly #most: number
  readonly #lock = createKeyedLock()
  readonly #held = new Map<string, number>()

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
    if ((this.#held.get(key) ?? 0) >= this.#most)
      throw new SandlotError('rate_limited', 'Too much was sent at once. Wait for the answers, then go on.')
    this.#count(key, 1)
    try {
      return await this.#lock.run(key, work)
    } finally {
      this.#count(key, -1)
    }
  }

  #count(key: string, change: 1 | -1): void {
    const held = (this.#held.get(key) ?? 0) + change
    if (held === 0) this.#held.delete(key)
    else this.#held.set(key, held)
  }
}
