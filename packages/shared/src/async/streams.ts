/**
 * Stream primitives: a bounded queue, and a merge of generators that guarantees "stored before it
 * takes effect".
 */

/**
 * Run generators together, at most `limit` at a time, and yield their values as they arrive. A
 * generator resumes only after the consumer has taken its value *and asked for the next one*: the
 * consumer's work on a value (store it, send it) is done before that. Returns their results in the
 * order of `sources`.
 *
 * When one throws, or the consumer stops early, all others are ended with `return()` first.
 */
export async function* mergeGenerators<T, R>(
  sources: readonly (() => AsyncGenerator<T, R>)[],
  limit: number = sources.length,
): AsyncGenerator<T, R[]> {
  const results: R[] = []
  const running = new Map<number, { generator: AsyncGenerator<T, R>; next: Promise<void> }>()
  // At most one per source. In a race, a silent source would retain every value it lost to.
  const arrived: Arrival<T, R>[] = []
  let wake: (() => void) | undefined
  let started = 0

  const advance = (index: number, generator: AsyncGenerator<T, R>): void => {
    const arrive = (what: Arrival<T, R>): void => {
      arrived.push(what)
      wake?.()
    }
    const next = generator.next().then(
      (result) => arrive({ index, result }),
      (error: unknown) => arrive({ index, error }),
    )
    running.set(index, { generator, next })
  }
  const fill = (): void => {
    while (started < sources.length && running.size < Math.max(1, limit)) {
      const source = sources[started]
      if (source !== undefined) advance(started, source())
      started++
    }
  }

  try {
    fill()
    while (running.size > 0) {
      const first = arrived.shift()
      if (first === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        continue
      }
      if ('error' in first) throw first.error
      const { index, result } = first
      const entry = running.get(index)
      if (entry === undefined) continue
      if (result.done === true) {
        results[index] = result.value
        running.delete(index)
        fill()
      } else {
        yield result.value
        advance(index, entry.generator)
      }
    }
    return results
  } finally {
    await Promise.allSettled(
      [...running.values()].map(({ generator, next }) => endGenerator(generator, next)),
    )
  }
}

type Arrival<T, R> = { index: number; result: IteratorResult<T, R> } | { index: number; error: unknown }

/** `return()` waits for a pending `next()`; drop that result, its consumer has stopped. */
async function endGenerator<T, R>(generator: AsyncGenerator<T, R>, pending: Promise<unknown>): Promise<void> {
  const ended = generator.return(undefined as R)
  await Promise.allSettled([pending, ended])
}

/**
 * A queue between one producer and one consumer. `push` never blocks; it answers false when `limit`
 * values are pending, and then drops the value. Iterating ends after `end()`, or throws the
 * argument of `fail`, once the rest is read.
 */
export class Queue<T> implements AsyncIterable<T> {
  readonly #limit: number
  #values: T[] = []
  #ended: { error?: unknown } | undefined
  #wake: (() => void) | undefined
  /** The consumer has read everything and waits for more. */
  #isIdle = false
  #onIdle: (() => void)[] = []

  constructor(limit = Number.POSITIVE_INFINITY) {
    this.#limit = limit
  }

  get size(): number {
    return this.#values.length
  }

  push(value: T): boolean {
    if (this.#ended !== undefined || this.#values.length >= this.#limit) return false
    this.#values.push(value)
    this.#isIdle = false
    this.#wake?.()
    return true
  }

  end(): void {
    this.#ended ??= {}
    this.#wake?.()
    this.#tellIdle()
  }

  fail(error: unknown): void {
    this.#ended ??= { error }
    this.#wake?.()
    this.#tellIdle()
  }

  /**
   * Resolves when the consumer has read everything and waits for more, or when no more values come.
   */
  async idle(): Promise<void> {
    while (!this.#isIdle && this.#ended === undefined)
      await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  #tellIdle(): void {
    for (const tell of this.#onIdle.splice(0)) tell()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for (;;) {
      const batch = await this.takeAll()
      if (batch.length === 0) return
      yield* batch
    }
  }

  /**
   * All pending values, in order, once there is one; none: it has ended. Throws the argument of
   * `fail` once the rest is taken.
   */
  async takeAll(): Promise<T[]> {
    while (this.#values.length === 0) {
      if (this.#ended !== undefined) {
        if ('error' in this.#ended) throw this.#ended.error
        return []
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        this.#isIdle = true
        this.#tellIdle()
      })
      this.#isIdle = false
      this.#wake = undefined
    }
    const batch = this.#values
    this.#values = []
    return batch
  }
}
