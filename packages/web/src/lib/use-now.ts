import { useSyncExternalStore } from 'react'

/**
 * One clock for all timers on the screen, ticking once a second while it has a reader. Epoch
 * milliseconds.
 */
let now = Date.now()
let interval: ReturnType<typeof setInterval> | undefined
const listeners = new Set<() => void>()

function listen(listener: () => void): () => void {
  listeners.add(listener)
  interval ??= setInterval(() => {
    now = Date.now()
    for (const each of listeners) each()
  }, 1000)
  now = Date.now()
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(interval)
    interval = undefined
  }
}

const still = (): (() => void) => () => undefined

const read = (): number => now

/** The current time, kept current only while `ticking`. */
export function useNow(ticking: boolean): number {
  return useSyncExternalStore(ticking ? listen : still, read, read)
}
