/** Messages that arrive while a prompt runs. */
export class Inbox {
  #waiting: { text: string; as: 'steer' | 'queue' }[] = []

  /**
   * `steer`: joins the running prompt before its next request. `queue`: becomes a prompt of its own
   * behind it.
   */
  send(text: string, as: 'steer' | 'queue' = 'steer'): void {
    this.#waiting.push({ text, as })
  }

  /** Waiting messages, oldest first. */
  get waiting(): readonly { text: string; as: 'steer' | 'queue' }[] {
    return [...this.#waiting]
  }

  /** The oldest so many wait no more: they are in the log. */
  stored(count: number): void {
    this.#waiting.splice(0, count)
  }
}
