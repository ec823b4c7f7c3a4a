/**
 * The last few results of work on values that come again at once, as an event does that is sent to
 * each reader of one session. Others are made anew and push the oldest out.
 */
const MOST = 8

export class Recent<Key, Value> {
  readonly #isSame: (one: Key, other: Key) => boolean
  readonly #kept: { key: Key; value: Value }[] = []
  #next = 0

  constructor(isSame: (one: Key, other: Key) => boolean = Object.is) {
    this.#isSame = isSame
  }

  find(key: Key): Value | undefined {
    return this.#kept.find((kept) => this.#isSame(kept.key, key))?.value
  }

  keep(key: Key, value: Value): void {
    this.#kept[this.#next] = { key, value }
    this.#next = (this.#next + 1) % MOST
  }

  /** What `make` returned for this key, if that was lately; else what it returns now. */
  get(key: Key, make: () => Value): Value {
    const found = this.find(key)
    if (found !== undefined) return found
    const value = make()
    this.keep(key, value)
    return value
  }
}
