/**
 * A time limit that can be put off while something else is waited for whose time is not counted.
 */

interface Deadline {
  /** Aborted with `timeout`. */
  signal: AbortSignal
  /** Milliseconds, never below 0. */
  remainingMs(): number
  /**
   * Runs `work` with `ms` more, which may be infinite; afterwards the time it took is given back.
   */
  extend<T>(ms: number, work: () => Promise<T>): Promise<T>
  /** It never comes any more. */
  clear(): void
}

export function createDeadline(limitMs: number): Deadline {
  const controller = new AbortController()
  let at = 0
  let timer: NodeJS.Timeout | undefined
  const set = (ms: number): void => {
    clearTimeout(timer)
    at = performance.now() + ms
    if (Number.isFinite(ms)) timer = setTimeout(() => controller.abort('timeout'), ms)
  }
  const remainingMs = (): number => Math.max(0, at - performance.now())
  set(limitMs)
  return {
    signal: controller.signal,
    remainingMs,
    async extend(ms, work) {
      const left = remainingMs()
      set(left + ms)
      try {
        return await work()
      } finally {
        if (!controller.signal.aborted) set(left)
      }
    },
    clear: () => clearTimeout(timer),
  }
}
