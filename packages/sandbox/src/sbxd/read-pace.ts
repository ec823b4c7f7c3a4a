/** A flood is this many bytes … */
const FLOOD_BYTES = 256 * 1024
/** … within this time, … */
const FLOOD_MS = 2
/** … and ends when so long passes without another one. */
const LASTS_MS = 20
/** A shorter read leaves little unread. */
const LONG_BYTES = 128 * 1024

/**
 * Decides when a reader should let bytes accumulate. A reader that wakes for every piece wakes
 * every process before it as well; in a flood that costs more than the bytes. Without a flood it
 * never pauses.
 */
export class ReadPace {
  #bytes = 0
  #since = -Infinity
  #floodUntil = -Infinity

  /**
   * True to pause before the next read, after one of `bytes` at `now` (milliseconds, on any
   * monotonic clock).
   */
  restsAfter(bytes: number, now: number): boolean {
    this.#bytes += bytes
    if (this.#bytes >= FLOOD_BYTES) {
      if (now - this.#since < FLOOD_MS) this.#floodUntil = now + LASTS_MS
      this.#since = now
      this.#bytes = 0
    }
    return bytes < LONG_BYTES && now < this.#floodUntil
  }
}
