/** Event loop delay: the time that every answer of the process had to wait. */
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Milliseconds between two samples, and the possible error of a delay. */
const RESOLUTION_MS = 10

/** In milliseconds. All 0 without samples. */
export interface LoopDelays {
  p50: number
  p99: number
  max: number
}

export class LoopDelay {
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })

  constructor() {
    this.#histogram.enable()
  }

  /** Delays since the previous call. */
  take(): LoopDelays {
    const { count } = this.#histogram
    const { p50, p99, max } = {
      p50: this.#histogram.percentile(50),
      p99: this.#histogram.percentile(99),
      max: this.#histogram.max,
    }
    this.#histogram.reset()
    return count === 0 ? { p50: 0, p99: 0, max: 0 } : { p50: held(p50), p99: held(p99), max: held(max) }
  }
}

/** Excess milliseconds between two samples. */
function held(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
}
