/**
 * Work under one key happens in the order in which it was asked for, and a bounded amount of it
 * waits; work under different keys side by side.
 */
import { createKeyedLock } from '@sandlot/shared/async/keyed-lock'
import { SandlotError } from '@sandlot/shared/base/errors'

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
      throw new SandlotError(
        'rate_limited',
        'Too many requests at once. Wait for the answers, then continue.',
      )
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

/** Work of which only the newest matters: under one key one runs, and at most one waits. */
export class NewestOnly {
  /** By key of what runs: settles what waits, with whether it runs. */
  readonly #held = new Map<string, ((runs: boolean) => void) | undefined>()

  /**
   * Begins `work` when what runs under `key` has ended. Resolves at once, without running it, when
   * newer work replaces it before. Rejects with what `work` throws.
   */
  async run(key: string, work: () => Promise<void>): Promise<void> {
    if (!this.#held.has(key)) this.#held.set(key, undefined)
    else if (!(await this.#isNext(key))) return
    try {
      await work()
    } finally {
      const next = this.#held.get(key)
      if (next === undefined) this.#held.delete(key)
      else this.#held.set(key, undefined)
      next?.(true)
    }
  }

  #isNext(key: string): Promise<boolean> {
    return new Promise((resolve) => {
      this.#held.get(key)?.(false)
      this.#held.set(key, resolve)
    })
  }
}
