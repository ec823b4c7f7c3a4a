/**
 * How fast a server's messages are taken. One that floods us waits for its pipe; everybody else's work goes on between
 * its messages.
 */
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'

/** Handled before anything else gets its turn. */
const TOGETHER = 64
/** In a window. Far more than any honest server sends. */
const MOST = 4_000
const WINDOW_MS = 1_000

export interface MessagePace {
  /** Wait until the next message may be handled. */
  next(): Promise<void>
}

export function createMessagePace(): MessagePace {
  let windowEnds = performance.now() + WINDOW_MS
  let inWindow = 0
  return {
    async next() {
      inWindow++
      if (inWindow % TOGETHER === 0) await turn()
      const now = performance.now()
      if (now < windowEnds && inWindow > MOST) await sleep(windowEnds - now)
      if (performance.now() < windowEnds) return
      windowEnds = performance.now() + WINDOW_MS
      inWindow = 0
    },
  }
}
