/**
 * Runs so many pieces of work at once. Keys that wait take turns, so that the many pieces of one
 * key stand before one piece of each other key at most.
 */
export class FairQueue {
  /** By key, in the order of their turns: each starts a piece of work. */
  readonly #waiting = new Map<string, (() => void)[]>()
  #free: number

  constructor(atOnce: number) {
    this.#free = atOnce
  }

  /** Resolves or rejects as `work` does; work of one key begins in the order of the calls. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await this.#turn(key)
    try {
      return await work()
    } finally {
      this.#startNext()
    }
  }

  /** Pieces of work of this key that have not begun. */
  waitingOf(key: string): number {
    return this.#waiting.get(key)?.length ?? 0
  }

  #turn(key: string): Promise<void> {
    return new Promise((resolve) => {
      const mine = this.#waiting.get(key)
      if (mine === undefined) this.#waiting.set(key, [resolve])
      else mine.push(resolve)
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
