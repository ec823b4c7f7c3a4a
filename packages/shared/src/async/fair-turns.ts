import { SandlotError } from '../errors.ts'

/**
 * Runs so many pieces of work at once. Keys that wait take turns, so that the many pieces of one
 * key stand before one piece of each other key at most.
 */
export class FairTurns {
  /** By key, in the order of their turns: each starts a piece of work. */
  readonly #waiting = new Map<string, (() => void)[]>()
  readonly #mostWaiting: number
  #free: number

  /** `mostWaiting`: of one key. */
  constructor(atOnce: number, mostWaiting = Infinity) {
    this.#free = atOnce
    this.#mostWaiting = mostWaiting
  }

  /**
   * Resolves or rejects as `work` does; work of one key begins in the order of the calls. Throws
   * `rate_limited` where too much of this key waits.
   */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await this.#turn(key)
    try {
      return await work()
    } finally {
      this.#startNext()
    }
  }

  #turn(key: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const mine = this.#waiting.get(key)
      if (mine === undefined) this.#waiting.set(key, [resolve])
      else if (mine.length < this.#mostWaiting) mine.push(resolve)
      else reject(new SandlotError('rate_limited', 'Too much of yours waits already. Try again in a moment.'))
    })
  }

  #startNext(): void {
    const [first] = this.#waiting
    if (first === undefined) {
      this.#free++
      return
    }
    const [key, mine] = first
    this.#waiting.delete(key)
    const start = mine.shift()
    // Behind the others.
    if (mine.length > 0) this.#waiting.set(key, mine)
    start?.()
  }
}
