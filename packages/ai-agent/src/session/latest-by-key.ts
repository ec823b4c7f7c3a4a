/** A queue between one producer and one reader that keeps only the latest value of each key, so it is never longer than the keys. */
export class LatestByKey<K, V> implements AsyncIterable<V> {
  readonly #values = new Map<K, V>()
  #ended = false
  #wake: (() => void) | undefined

  /** A newer value takes the place of the older one, at the end. */
  set(key: K, value: V): void {
    if (this.#ended) return
    this.#values.delete(key)
    this.#values.set(key, value)
    this.#wake?.()
  }

  /** What waits is still read. */
  end(): void {
    this.#ended = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<V, void> {
    for (;;) {
      const next = this.#values.entries().next()
      if (next.done !== true) {
        this.#values.delete(next.value[0])
        yield next.value[1]
      } else if (this.#ended) {
        return
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#wake = undefined
      }
    }
  }
}
