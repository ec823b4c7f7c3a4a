/**
 * Which settled events of one session a reader has been sent. Numbers are dense, so exactly the next one passes. What
 * comes before it was sent; what comes beyond it is the tail of an older load on the same connection, and the load that
 * follows a `restart` brings it again in its place. Sent early, it would be ahead of a hole, and the reader would drop it.
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

  /** The reader wants everything after this number, whatever it was sent before. A load must follow. */
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
