/**
 * Cache of the last few results, for values that repeat at once, like an event that is sent to each
 * reader of a session. Newer results evict the oldest.
 */
const MOST = 8

export class Recent<Key, Value> {
  readonly #isSame: (one: Key, other: Key) => boolean
  readonly #entries: { key: Key; value: Value }[] = []
  #next = 0

  constructor(isSame: (one: Key, other: Key) => boolean = Object.is) {
    this.#isSame = isSame
  }

  find(key: Key): Value | undefined {
    return this.#entries.find((kept) => this.#isSame(kept.key, key))?.value
  }

  keep(key: Key, value: Value): void {
    this.#entries[this.#next] = { key, value }
    this.#next = (this.#next + 1) % MOST
  }

  /** The cached result of `make` for this key, else a new one. */
  get(key: Key, make: () => Value): Value {
    const found = this.find(key)
    if (found !== undefined) return found
    const value = make()
    this.keep(key, value)
    return value
  }
}
