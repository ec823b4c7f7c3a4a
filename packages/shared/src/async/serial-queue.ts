/** Runs one task after another, in the order of the calls. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0

  /** Running and waiting tasks. */
  get size(): number {
    return this.#waiting
  }

  /** Resolves or rejects like `work`; later tasks run in either case. */
  run<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting++
    const result = this.#last.then(work)
    const over = (): void => {
      this.#waiting--
    }
    this.#last = result.then(over, over)
    return result
  }

  /** Resolves when every task up to now is over. Never rejects. */
  async idle(): Promise<void> {
    await this.#last
  }
}
