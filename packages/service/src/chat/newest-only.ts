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
