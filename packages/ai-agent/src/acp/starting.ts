/** Users who are waiting for their sandbox. */

/** Users who are waiting for their sandbox. */
export class Starting {
  readonly #waiting = new Map<string, number>()

  has(userId: string): boolean {
    return this.#waiting.has(userId)
  }

  /** `acquired`, for which this user waits until it settles. */
  async during<T>(userId: string, acquired: Promise<T>): Promise<T> {
    this.#waiting.set(userId, (this.#waiting.get(userId) ?? 0) + 1)
    try {
      return await acquired
    } finally {
      const left = (this.#waiting.get(userId) ?? 1) - 1
      if (left > 0) this.#waiting.set(userId, left)
      else this.#waiting.delete(userId)
    }
  }
}
