/**
 * Runs a limited number of tasks at once. Waiting keys alternate, so many tasks of one key delay
 * every other key by at most one task.
 */
export class FairQueue {
  /** By key, in order of their slots: each starts a task. */
  readonly #waiting = new Map<string, (() => void)[]>()
  #free: number

  constructor(atOnce: number) {
    this.#free = atOnce
  }

  /** Resolves or rejects like `work`; tasks of one key start in the order of the calls. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await this.#turn(key)
    try {
      return await work()
    } finally {
      this.#startNext()
    }
  }

  /** Tasks of this key that have not started. */
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
    // To the end of the queue.
    if (mine.length > 0) this.#waiting.set(key, mine)
    start?.()
  }
}
