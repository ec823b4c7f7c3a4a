/** Reports on their way to somebody who takes them more slowly than they come: only the newest is kept. */
export class Latest<T> {
  #value: T | undefined
  #waiting: (() => void) | undefined
  #ended = false

  set(value: T): void {
    this.#value = value
    this.#waiting?.()
  }

  end(): void {
    this.#ended = true
    this.#waiting?.()
  }

  /** At most one in `everyMs`; ends with `end`, without what nobody had taken by then. */
  async *values(everyMs: number): AsyncGenerator<T, void> {
    let last = -Infinity
    while (!this.#ended) {
      const wait = last + everyMs - performance.now()
      if (this.#value === undefined || wait > 0)
        await this.#change(this.#value === undefined ? undefined : wait)
      const value = this.#value
      if (this.#ended || value === undefined || performance.now() < last + everyMs) continue
      this.#value = undefined
      last = performance.now()
      yield value
    }
  }

  async #change(ms: number | undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting = resolve
    const timer = ms === undefined ? undefined : setTimeout(resolve, ms)
    await promise
    clearTimeout(timer)
    this.#waiting = undefined
  }
}
