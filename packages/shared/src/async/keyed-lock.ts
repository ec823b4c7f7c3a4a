/** One at a time per key, in the order of the calls; any number of keys at once. */
export interface KeyedLock {
  run<T>(key: string, work: () => Promise<T>): Promise<T>
  /** Like `run`, without waiting: undefined when the key is held, or was until just now. */
  tryRun<T>(key: string, work: () => Promise<T>): Promise<T> | undefined
}

/** Keeps nothing of a key after its last task. */
export function createKeyedLock(): KeyedLock {
  const tails = new Map<string, Promise<unknown>>()
  function run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = tails.get(key)
    const result = before ? before.then(work, work) : work()
    const tail = result.catch(() => undefined)
    tails.set(key, tail)
    void tail.then(() => {
      if (tails.get(key) === tail) tails.delete(key)
    })
    return result
  }

  return { run, tryRun: (key, work) => (tails.has(key) ? undefined : run(key, work)) }
}

/**
 * Runs `work` when a slot is free. Rejects with the signal's reason when it aborts before that;
 * later it has no effect.
 */
export type Gate = <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/** At most `limit` tasks at once; the others wait in order. */
export function createGate(limit: number): Gate {
  let free = limit
  const waiting = new Set<() => void>()

  function turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const leave = (): void => {
        waiting.delete(go)
        reject(signal?.reason)
      }
      if (signal?.aborted) return leave()
      signal?.addEventListener('abort', leave, { once: true })
      waiting.add(go)
    })
  }

  return async (work, signal) => {
    if (free > 0) free -= 1
    else await turn(signal)
    try {
      return await work()
    } finally {
      const [next] = waiting
      if (next) {
        waiting.delete(next)
        next()
      } else free += 1
    }
  }
}

/** At most `limit` tasks of each key at once; the others of that key wait in order. */
export function createKeyedGate(limit: number): KeyedLock['run'] {
  const gates = new Map<string, { gate: Gate; pending: number }>()
  return async (key, work) => {
    const mine = gates.get(key) ?? { gate: createGate(limit), pending: 0 }
    gates.set(key, mine)
    mine.pending += 1
    try {
      return await mine.gate(work)
    } finally {
      mine.pending -= 1
      if (mine.pending === 0) gates.delete(key)
    }
  }
}
