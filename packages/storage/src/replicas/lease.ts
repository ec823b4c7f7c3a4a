/** Lease of a replica on its users, in memory shared with the thread of its heartbeats. */
import { uptime } from 'node:os'

/** Milliseconds since boot, alike on all threads; the time of a suspended machine counts. */
export function bootMs(): number {
  return Math.round(uptime() * 1_000)
}

/** Places in `cells`: when the last confirmed heartbeat was sent; last turn of the main thread. */
const CONFIRMED = 0
const TURN = 1

export class Lease {
  readonly cells: BigInt64Array<SharedArrayBuffer>
  readonly #staleMs: number

  constructor(staleMs: number, cells = new BigInt64Array(new SharedArrayBuffer(16))) {
    this.cells = cells
    this.#staleMs = staleMs
  }

  /** False: other replicas may own its users, now or soon. */
  isValid(now = bootMs()): boolean {
    return now - Number(Atomics.load(this.cells, CONFIRMED)) <= this.#staleMs
  }

  /**
   * By the thread, when the heartbeat sent at `at` was answered. An expired lease stays expired:
   * others may have claimed users in between.
   */
  extend(at: number, now = bootMs()): void {
    if (this.isValid(now)) this.renew(at)
  }

  /** By the main thread, after comparing its users with the answer to that heartbeat. */
  renew(at: number): void {
    if (Number(Atomics.load(this.cells, CONFIRMED)) < at) Atomics.store(this.cells, CONFIRMED, BigInt(at))
  }

  /** By the main thread, from its event loop. */
  turned(now = bootMs()): void {
    Atomics.store(this.cells, TURN, BigInt(now))
  }

  /** Milliseconds since the main thread last turned. */
  silence(now = bootMs()): number {
    return now - Number(Atomics.load(this.cells, TURN))
  }
}
