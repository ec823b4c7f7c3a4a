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
    // The newest first: it is the one that repeats.
    for (let age = 1; age <= this.#entries.length; age++) {
      const kept = this.#entries[(this.#next + MOST - age) % MOST]
      if (kept !== undefined && this.#isSame(kept.key, key)) return kept.value
    }
    return undefined
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
