/**
 * Which settled events of one session a reader has been sent. Numbers are dense, so exactly the
 * next one passes. Lower numbers were sent. Higher ones are the tail of an older load on the same
 * connection: the load after a `restart` brings them again in order, and sent early they would
 * leave a hole, for which the reader drops them.
 */
export class Cursor {
  #upTo: number | undefined

  /** Undefined: nothing is known; the first event decides. */
  constructor(after?: number) {
    this.#upTo = after
  }

  /** Everything up to this number was sent. */
  get upTo(): number {
    return this.#upTo ?? 0
  }

  /** Everything after this number is sent again. A load must follow. */
  restart(after: number): void {
    this.#upTo = after
  }

  /** True: it is the next one, send it. */
  take(seq: number): boolean {
    this.#upTo ??= seq - 1
    if (seq !== this.#upTo + 1) return false
    this.#upTo = seq
    return true
  }
}
