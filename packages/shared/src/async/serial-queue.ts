/** Runs one piece of work after another, in the order of the calls. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0

  /** How many run or wait. */
  get size(): number {
    return this.#waiting
  }

  /** Resolves or rejects as `work` does; later work runs in either case. */
  run<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting++
    const result = this.#last.then(work)
    const over = (): void => {
      this.#waiting--
    }
    this.#last = result.then(over, over)
    return result
  }
}
