/**
 * A wait that ends this much later than asked for says that this process itself stood still, not
 * the other side.
 */
const STALL = 0.5
/** How much longer than the silence before it the wait for a sign of life is. */
const PATIENCE = 1.25
/** An idle connection is asked ever more seldom, up to this many times the shortest wait. */
const SELDOM = 15

interface HeartbeatOptions {
  /**
   * Milliseconds of silence after which a sign of life is asked for; it may take a quarter longer
   * than that.
   */
  everyMs: number
  /**
   * Whether a request is pending; otherwise the connection is asked more and more seldom.
   */
  busy: () => boolean
  /** The other side may be frozen on purpose: nothing is asked for. */
  paused: () => boolean
  ping: () => void
  /** Called once, after `silentMs` without a byte. */
  lost: (silentMs: number) => void
}

/**
 * Detects a connection that went silent without a close. With the default of
 * two seconds that takes at most 4.5 s while something is under way.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  #timer: NodeJS.Timeout | undefined
  #heardAt = performance.now()
  #interval: number
  /** When the timer is due. */
  #dueAt = 0
  #asked = false

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#interval = options.everyMs
    this.#schedule(options.everyMs)
  }

  /** Something arrived. */
  heard(): void {
    this.#heardAt = performance.now()
    this.#asked = false
  }

  /** A request begins: no long waits any more. Also after a pause. */
  hurry(): void {
    const { everyMs } = this.#options
    if (this.#timer === undefined || this.#interval === everyMs) return
    this.#interval = everyMs
    this.#asked = false
    this.#heardAt = performance.now()
    this.#schedule(everyMs)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer)
    this.#dueAt = performance.now() + ms
    // What arrived while this process stood still is read before the silence is judged.
    this.#timer = setTimeout(() => setImmediate(() => this.#look()), ms).unref()
  }

  #look(): void {
    if (this.#timer === undefined) return
    const { everyMs, busy, paused, ping, lost } = this.#options
    const now = performance.now()
    if (paused()) return this.#again(now, everyMs)
    if (now - this.#dueAt > everyMs * STALL) return this.#again(now, this.#interval)
    const silent = now - this.#heardAt
    if (this.#asked) {
      this.stop()
      lost(silent)
    } else if (silent < this.#interval) {
      this.#schedule(Math.max(1, this.#interval - silent))
    } else {
      this.#asked = true
      this.#interval = busy() ? everyMs : Math.min(this.#interval * 2, everyMs * SELDOM)
      ping()
      this.#schedule(everyMs * PATIENCE)
    }
  }

  /** Counts as a sign of life. */
  #again(now: number, ms: number): void {
    this.#heardAt = now
    this.#asked = false
    this.#interval = ms
    this.#schedule(ms)
  }
}
