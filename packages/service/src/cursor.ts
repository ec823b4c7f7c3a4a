/**
 * Which settled events of one session a reader has been sent. A replay and a live tail may overlap for a moment (a second
 * resume on the same connection); each event still passes once, and none is taken for sent that was not.
 */
export class Cursor {
  #upTo: number | undefined
  /** Sent beyond a hole that a replay is about to fill. */
  readonly #ahead = new Set<number>()

  /** Undefined: nothing is known; the first event decides. */
  constructor(after?: number) {
    this.#upTo = after
  }

  /** Everything up to this number was sent. */
  get upTo(): number {
    return this.#upTo ?? 0
  }

  /** The reader wants everything after this number, whatever it was sent before. */
  restart(after: number): void {
    this.#upTo = after
    this.#ahead.clear()
  }

  /** True: send it. False: it was sent. */
  take(seq: number): boolean {
    this.#upTo ??= seq - 1
    if (seq <= this.#upTo || this.#ahead.has(seq)) return false
    this.#ahead.add(seq)
    while (this.#ahead.delete(this.#upTo + 1)) this.#upTo++
    return true
  }
}
