/** One at a time per key, any number of keys at once. */
export interface KeyedLock {
  run<T>(key: string, work: () => Promise<T>): Promise<T>
}

/** A lock per key, in the order of the calls. A key that nobody waits for takes no memory. */
export function createKeyedLock(): KeyedLock {
  const tails = new Map<string, Promise<unknown>>()
  return {
    run(key, work) {
      const before = tails.get(key)
      const result = before ? before.then(work, work) : work()
      const tail = result.catch(() => undefined)
      tails.set(key, tail)
      void tail.then(() => {
        if (tails.get(key) === tail) tails.delete(key)
      })
      return result
    },
  }
}

/** At most `limit` pieces of work at once; the others wait in order. */
export function createGate(limit: number): <T>(work: () => Promise<T>) => Promise<T> {
  let free = limit
  const waiting: (() => void)[] = []
  return async (work) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free += 1
    }
  }
}
