/** So many bytes in … */
const FLOOD_BYTES = 256 * 1024
/** … so short a time are a flood … */
const FLOOD_MS = 2
/** … and without that many more it is over. */
const LASTS_MS = 20
/** A read that brings less leaves little behind. */
const LONG_BYTES = 128 * 1024

/**
 * Says when a reader should let bytes gather. A reader that wakes for every piece keeps all in
 * front of it awake as well, each for each piece; in a flood that costs more than the bytes do.
 * Where nothing floods it never says so.
 */
export class ReadPace {
  #bytes = 0
  #since = -Infinity
  #floodUntil = -Infinity

  /**
   * Whether to wait a moment before the next read, after one that brought `bytes` at `now`
   * (milliseconds, any clock that only grows).
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
