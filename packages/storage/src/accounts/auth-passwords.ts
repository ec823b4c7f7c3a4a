/** Passwords as argon2id, hashed a few at a time: each hash takes 19 MiB and most of a core. */
import { availableParallelism } from 'node:os'
import { hash, verify } from '@node-rs/argon2'
import { type Gate, createGate } from '@sandlot/shared/async/keyed-lock'
import { SandlotError } from '@sandlot/shared/base/errors'

/** Cores per running hash: the others stay free for other work. */
const CORES_PER_HASH = 2
const MOST_WAITING = 32
/** A full queue is half empty after this time, also on a slow machine. */
const RETRY_AFTER_SECONDS = 2

export class PasswordHasher {
  readonly #gate: Gate
  readonly #most: number
  #pending = 0

  constructor(cores = availableParallelism()) {
    const atOnce = Math.max(1, Math.floor(cores / CORES_PER_HASH))
    this.#gate = createGate(atOnce)
    this.#most = atOnce + MOST_WAITING
  }

  /** Throws `rate_limited` when the queue is full; so does `verify`. */
  hash(password: string): Promise<string> {
    // The defaults of the library: argon2id, 19 MiB, two passes.
    return this.run(() => hash(password))
  }

  verify(given: { hash: string; password: string }): Promise<boolean> {
    return this.run(() => verify(given.hash, given.password))
  }

  /**
   * Runs `work` when a slot is free. Throws `rate_limited` without running it when the queue is
   * full.
   */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#pending >= this.#most)
      throw new SandlotError(
        'rate_limited',
        `Too many passwords are being checked now. Try again in ${RETRY_AFTER_SECONDS} seconds.`,
        { retryAfterSeconds: RETRY_AFTER_SECONDS },
      )
    this.#pending++
    try {
      return await this.#gate(work)
    } finally {
      this.#pending--
    }
  }
}
