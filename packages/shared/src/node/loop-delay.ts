/**
 * How long the event loop of a process was held: what every answer of the process had to wait for.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Milliseconds between two looks, and by how much a delay may be told too short. */
const RESOLUTION_MS = 10

/** In milliseconds. All 0 when nothing was seen. */
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

  /** The delays since this was asked last. */
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

/** Of the nanoseconds between two looks, the milliseconds that were too many. */
function held(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
}
