/** Lets the process do other work between the parts of a long computation. */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Milliseconds for which one computation may hold the thread. */
const SLICE_MS = 10

export class TimeSlices {
  #since = performance.now()

  /** To be awaited between two parts. Resolves at once until the slice is used up, then in the next turn of the event loop. */
  async pause(): Promise<void> {
    if (performance.now() - this.#since < SLICE_MS) return
    await nextTurn()
    this.#since = performance.now()
  }
}
