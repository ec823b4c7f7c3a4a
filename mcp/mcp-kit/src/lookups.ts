/**
 * Lookups on a foreign API: answered from memory while that is fresh, asked once
 * for all who want the same at the same time, limited per user, and ended at a time limit. The only
 * file here that imports lru-cache.
 */
import { LRUCache } from 'lru-cache'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { ToolFailure } from './tool-failure.ts'

interface LookupRules {
  /** The other side's name, for messages. */
  service: string
  /** Lookups of one user that reach the other side. */
  perMinute: number
  /** How long an answer is fresh, in milliseconds. */
  freshMs: number
  /** For everything that one lookup does, in milliseconds. */
  timeoutMs: number
  /** Milliseconds on a clock that never jumps. */
  clock?: () => number
}

interface Lookup {
  userId: string
  /** The same key is the same question. Hold the user in it where answers are personal. */
  key: string
  /** Aborted when the caller no longer wants the answer. */
  signal: AbortSignal
}

/** One request on its way, and how many wait for it. */
interface Flight<T> {
  answer: Promise<T>
  waiting: number
  abort: AbortController
}

/** Answers that are kept. */
const MAX_KEPT = 500

export class Lookups<T extends object> {
  readonly #rules: LookupRules
  readonly #kept: LRUCache<string, T>
  readonly #flights = new Map<string, Flight<T>>()
  readonly #take: (userId: string) => Promise<void>

  constructor(rules: LookupRules) {
    this.#rules = rules
    const { freshMs, clock } = rules
    this.#kept = new LRUCache({
      max: MAX_KEPT,
      ttl: freshMs,
      ...(clock === undefined ? {} : { perf: { now: clock }, ttlResolution: 0 }),
    })
    this.#take = makeUserLimit(rules.perMinute)
  }

  /**
   * `ask` gets a signal that ends it at the time limit, or when the last caller stopped waiting.
   * Only a success is cached. Throws what `ask` throws; `timeout`, `cancelled` and `rate_limited`
   * are ours.
   */
  async find(
    lookup: Lookup,
    ask: (signal: AbortSignal) => Promise<T>,
  ): Promise<{ found: T; cached: boolean }> {
    const { userId, key, signal } = lookup
    if (signal.aborted) throw cancelled()
    const kept = this.#kept.get(key)
    if (kept !== undefined) return { found: kept, cached: true }
    let flight = this.#flights.get(key)
    if (flight === undefined) {
      await this.#take(userId)
      // Another call may have begun the same meanwhile; then one of the user's lookups was taken
      // for nothing.
      flight = this.#flights.get(key) ?? this.#begin(key, ask)
    }
    return { found: await this.#join(key, flight, signal), cached: false }
  }

  #begin(key: string, ask: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const abort = new AbortController()
    const flight: Flight<T> = { answer: this.#limited(abort, ask), waiting: 0, abort }
    this.#flights.set(key, flight)
    flight.answer.then(
      (found) => {
        this.#kept.set(key, found)
        this.#end(key, flight)
      },
      () => this.#end(key, flight),
    )
    return flight
  }

  #end(key: string, flight: Flight<T>): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key)
  }

  /** `ask` with the time limit. It ends then even if what it asks does not. */
  async #limited(abort: AbortController, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { service, timeoutMs } = this.#rules
    const timer = setTimeout(() => {
      const message = `${service} did not answer within ${timeoutMs / 1000} seconds. Try again, or ask for less.`
      abort.abort(new ToolFailure('timeout', message))
    }, timeoutMs)
    try {
      return await orAborted(ask(abort.signal), abort.signal)
    } catch (error) {
      // What a library makes of the abort is not the reason.
      throw abort.signal.aborted ? abort.signal.reason : error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Wait with the others; the last one who leaves ends the request. */
  async #join(key: string, flight: Flight<T>, signal: AbortSignal): Promise<T> {
    flight.waiting++
    try {
      return await orAborted(flight.answer, signal)
    } catch (error) {
      throw signal.aborted ? cancelled() : error
    } finally {
      flight.waiting--
      if (flight.waiting === 0) {
        // At once: a later caller must not join a request that ends.
        this.#end(key, flight)
        flight.abort.abort(cancelled())
      }
    }
  }
}

/** The same for the same fields, in whatever order they were written. */
export function keyOf(fields: object, userId = ''): string {
  const entries = Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([userId, entries])
}

/** `work`, or a rejection with the signal's reason as soon as it aborts. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const onAbort = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

function cancelled(): ToolFailure {
  return new ToolFailure('cancelled', 'The lookup was cancelled.')
}

/*
 * So many lookups of one user in a minute. The only file here that imports rate-limiter-flexible.
 */

/**
 * A function that takes one lookup of this user. It throws `rate_limited` when the minute is used
 * up.
 */
function makeUserLimit(perMinute: number): (userId: string) => Promise<void> {
  const limiter = new RateLimiterMemory({ points: perMinute, duration: 60 })
  return async (userId) => {
    try {
      await limiter.consume(userId)
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused
      const retryAfterSeconds = Math.max(1, Math.ceil(refused.msBeforeNext / 1000))
      throw new ToolFailure(
        'rate_limited',
        `You may look up ${perMinute} times a minute. Nothing was looked up; try again in ${retryAfterSeconds} seconds.`,
        { retryAfterSeconds },
      )
    }
  }
}
