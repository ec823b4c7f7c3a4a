/** A timer this much late shows that this process itself stood still, not the other side. */
const STALL = 0.5
/** Wait for an answer, relative to the silence before the ping. */
const PATIENCE = 1.25
/**
 * An idle connection is pinged less and less often, up to this many times the shortest interval. By
 * default 30 s: proxies cut a connection that is idle in one direction after a few minutes.
 */
const SELDOM = 15

interface HeartbeatOptions {
  /** Milliseconds of silence before a ping; the answer may take a quarter longer. */
  everyMs: number
  /** A request is pending; otherwise pings become rarer. */
  busy: () => boolean
  /** The other side may be frozen on purpose: no pings. */
  paused: () => boolean
  ping: () => void
  /** Time of the last frame that was sent, on the clock of `performance.now()`. */
  sentAt: () => number
  /** Called once, after `silentMs` without a byte. */
  lost: (silentMs: number) => void
}

/**
 * Detects a connection that went silent without a close: by default within 4.5 s while a request is
 * pending.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  #timer: NodeJS.Timeout | undefined
  #receivedAt = performance.now()
  #interval: number
  /** Due time of the timer. */
  #dueAt = 0
  #asked = false

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#interval = options.everyMs
    this.#schedule(options.everyMs)
  }

  /** Bytes arrived. */
  received(): void {
    this.#receivedAt = performance.now()
    this.#asked = false
  }

  /** Returns to short intervals for a request. Also after a pause. */
  hurry(): void {
    const { everyMs } = this.#options
    if (this.#timer === undefined || this.#interval === everyMs) return
    this.#interval = everyMs
    this.#asked = false
    this.#receivedAt = performance.now()
    this.#schedule(everyMs)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer)
    this.#dueAt = performance.now() + ms
    // Bytes that arrived while this process stood still are read before the silence is judged.
    this.#timer = setTimeout(() => setImmediate(() => this.#check()), ms).unref()
  }

  #check(): void {
    if (this.#timer === undefined) return
    const { everyMs, busy, paused, ping, sentAt, lost } = this.#options
    const now = performance.now()
    if (paused()) return this.#again(now, everyMs)
    if (now - this.#dueAt > everyMs * STALL) return this.#again(now, this.#interval)
    const silent = now - this.#receivedAt
    if (this.#asked) {
      this.stop()
      lost(silent)
    } else if (silent < this.#interval) {
      // Bytes of the other side alone keep nothing open in our direction, nor sbxd's lease.
      if (now - sentAt() >= everyMs * SELDOM) ping()
      const quietUntil = sentAt() + everyMs * SELDOM
      this.#schedule(Math.max(1, Math.min(this.#interval - silent, quietUntil - now)))
    } else {
      this.#asked = true
      this.#interval = busy() ? everyMs : Math.min(this.#interval * 2, everyMs * SELDOM)
      ping()
      this.#schedule(everyMs * PATIENCE)
    }
  }

  /** Counts as an answer. */
  #again(now: number, ms: number): void {
    this.#receivedAt = now
    this.#asked = false
    this.#interval = ms
    this.#schedule(ms)
  }
}
