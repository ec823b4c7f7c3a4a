/** A time limit that begins again with every sign of life, and stands still while somebody is asked. */
export interface IdleClock {
  /** Aborted at the limit, with reason `timeout`. */
  readonly signal: AbortSignal
  /** A sign of life. */
  again(): void
  /** Does not count until the returned function is called. */
  pause(): () => void
  /** For good, also where a pause ends later. */
  stop(): void
}

export function createIdleClock(ms: number): IdleClock {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let paused = 0
  let stopped = false
  const again = (): void => {
    clearTimeout(timer)
    if (paused === 0 && !stopped) timer = setTimeout(() => controller.abort('timeout'), ms)
  }
  again()
  return {
    signal: controller.signal,
    again,
    pause() {
      paused++
      clearTimeout(timer)
      return () => {
        paused--
        again()
      }
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
