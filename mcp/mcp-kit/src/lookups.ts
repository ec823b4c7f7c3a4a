/**
 * Lookups on a third-party API: cached, shared by simultaneous callers, limited per user and in
 * time. The only file here that imports lru-cache and rate-limiter-flexible.
 */
import { orAborted } from '@sandlot/shared/async/or-aborted'
import { LRUCache } from 'lru-cache'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { ToolFailure } from './tool-failure.ts'

interface LookupRules {
  /** Name of the API, for messages. */
  service: string
  /** Requests per user and minute. */
  perMinute: number
  /** Lifetime of a cached answer. */
  freshMs: number
  /** Time limit of one lookup. */
  timeoutMs: number
  /** Monotonic milliseconds. */
  clock?: () => number
}

interface Lookup {
  userId: string
  /** Cache key. Include the user if answers are personal. */
  key: string
  signal: AbortSignal
}

/** A pending request, and the number of callers that wait for it. */
interface Flight<T> {
  answer: Promise<T>
  waiting: number
  abort: AbortController
}

/** Cached answers. */
const MAX_CACHED = 500

export class Lookups<T extends object> {
  readonly #rules: LookupRules
  readonly #cache: LRUCache<string, T>
  readonly #flights = new Map<string, Flight<T>>()
  readonly #take: (userId: string) => Promise<void>

  constructor(rules: LookupRules) {
    this.#rules = rules
    const { freshMs, clock } = rules
    this.#cache = new LRUCache({
      max: MAX_CACHED,
      ttl: freshMs,
      ...(clock === undefined ? {} : { perf: { now: clock }, ttlResolution: 0 }),
    })
    this.#take = makeUserLimit(rules.perMinute)
  }

  /**
   * Aborts `ask` at the time limit, or when no caller waits any more. Only a success is cached.
   * Throws what `ask` throws, `timeout`, `cancelled` and `rate_limited`.
   */
  async find(
    lookup: Lookup,
    ask: (signal: AbortSignal) => Promise<T>,
  ): Promise<{ found: T; cached: boolean }> {
    const { userId, key, signal } = lookup
    if (signal.aborted) throw cancelled()
    const cached = this.#cache.get(key)
    if (cached !== undefined) return { found: cached, cached: true }
    let flight = this.#flights.get(key)
    if (flight === undefined) {
      await this.#take(userId)
      // If another call has begun the same lookup by now, one of the user's limit is wasted.
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
        this.#cache.set(key, found)
        this.#end(key, flight)
      },
      () => this.#end(key, flight),
    )
    return flight
  }

  #end(key: string, flight: Flight<T>): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key)
  }

  /** Runs `ask` with the time limit, even if that ignores the signal. */
  async #limited(abort: AbortController, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { service, timeoutMs } = this.#rules
    const timer = setTimeout(() => {
      const message = `${service} did not answer within ${timeoutMs / 1000} seconds. Try again, or ask for less.`
      abort.abort(new ToolFailure('timeout', message))
    }, timeoutMs)
    try {
      return await orAborted(ask(abort.signal), abort.signal)
    } catch (error) {
      // A library may replace the reason of the abort.
      throw abort.signal.aborted ? abort.signal.reason : error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Waits for a request, and aborts it when no other caller waits. */
  async #join(key: string, flight: Flight<T>, signal: AbortSignal): Promise<T> {
    flight.waiting++
    try {
      return await orAborted(flight.answer, signal)
    } catch (error) {
      throw signal.aborted ? cancelled() : error
    } finally {
      flight.waiting--
      if (flight.waiting === 0) {
        // Removed first: a later caller must not join an aborted request.
        this.#end(key, flight)
        flight.abort.abort(cancelled())
      }
    }
  }
}

/** A key that does not depend on the order of fields. */
export function keyOf(fields: object, userId = ''): string {
  const entries = Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([userId, entries])
}

function cancelled(): ToolFailure {
  return new ToolFailure('cancelled', 'The lookup was cancelled.')
}

/** Returns a function that counts one lookup of a user, or throws `rate_limited`. */
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
        `The limit is ${perMinute} lookups per minute. Nothing was looked up; try again in ${retryAfterSeconds} seconds.`,
        { retryAfterSeconds },
      )
    }
  }
}
