import { orTimeout } from './or-timeout.ts'

/**
 * A queue between one producer and one reader with only the latest value of each key, so its length
 * is bounded by the number of keys.
 */
export class LatestByKey<K, V> {
  readonly #values = new Map<K, V>()
  #ended = false
  #wake: (() => void) | undefined

  /** A newer value replaces the older one, at the end. */
  set(key: K, value: V): void {
    if (this.#ended) return
    this.#values.delete(key)
    this.#values.set(key, value)
    this.#wake?.()
  }

  /** Pending values are still read, unless they are discarded. */
  end({ discard = false }: { discard?: boolean } = {}): void {
    this.#ended = true
    if (discard) this.#values.clear()
    this.#wake?.()
  }

  /** At most one value in `everyMs`; ends with `end`. */
  async *values(everyMs = 0): AsyncGenerator<V, void> {
    let notBefore = -Infinity
    for (;;) {
      const next = this.#values.entries().next()
      const wait = notBefore - performance.now()
      if (next.done === true) {
        if (this.#ended) return
        await this.#change()
      } else if (wait > 0) {
        await this.#change(wait)
      } else {
        this.#values.delete(next.value[0])
        notBefore = performance.now() + everyMs
        yield next.value[1]
      }
    }
  }

  /** Resolves with the next `set` or `end`, or after `ms`. */
  async #change(ms?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    await orTimeout(promise, ms, undefined)
    this.#wake = undefined
  }
}
