/**
 * The only file that imports rate-limiter-flexible. Kept in memory: of several services each counts
 * for itself, so that together they let pass so many times as much.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { SandlotError } from '@sandlot/shared/base/errors'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { LRUCache } from 'lru-cache'
import { Pace } from './pace.ts'

/** Points in so many seconds. */
interface Rate {
  points: number
  seconds: number
}

export interface LimitRates {
  /** Failed sign-ins of one account from one address. */
  signInPair: Rate
  /**
   * Failed sign-ins of one account from anywhere. Beyond it sign-ins are slowed down: refusing them
   * would let a stranger lock a person out.
   */
  signInAccount: Rate
  /**
   * Milliseconds between two slowed sign-ins of one account, and the longest wait before one is
   * refused.
   */
  signInSlow: { everyMs: number; longestMs: number }
  /** Failed sign-ins from one address. */
  signInAddress: Rate
  /** Steps of sign-ins by a provider from one address: each is a request to it. */
  signInSteps: Rate
  /** Links for a new password to one address. */
  resets: Rate
  /** Prompts of one user. */
  prompts: Rate
  /** Tests of one user's notices. */
  notificationTests: Rate
}

export const DEFAULT_RATES: LimitRates = {
  signInPair: { points: 10, seconds: 15 * 60 },
  signInAccount: { points: 50, seconds: 15 * 60 },
  signInSlow: { everyMs: 3_000, longestMs: 30_000 },
  signInAddress: { points: 50, seconds: 15 * 60 },
  signInSteps: { points: 200, seconds: 15 * 60 },
  resets: { points: 3, seconds: 60 * 60 },
  prompts: { points: 60, seconds: 60 },
  notificationTests: { points: 5, seconds: 60 },
}

const KNOWN_ADDRESSES = 10_000

export interface Limits {
  /**
   * Counts `attempt` as a failed sign-in in advance: otherwise many concurrent tries would pass
   * before the first fails. The count is removed where it succeeds, with earlier failures of this
   * pair, and where the password was not checked (`rate_limited`). Waits where an account had too
   * many failures from anywhere. Throws `rate_limited` after too many from this address, or when
   * too many wait already, and what `attempt` throws.
   */
  signIn<T>(by: { address: string; email: string }, attempt: () => Promise<T>): Promise<T>
  /** Before each step of a sign-in by a provider. Throws `rate_limited`. */
  beginSignIn(address: string): Promise<void>
  /** Before a link for a new password is sent. Throws `rate_limited`. */
  beginReset(address: string, email: string): Promise<void>
  /** Throws `rate_limited`. */
  prompt(userId: string): Promise<void>
  /** Throws `rate_limited`. */
  notificationTest(userId: string): Promise<void>
}

export function makeLimits(rates: LimitRates = DEFAULT_RATES): Limits {
  const make = (rate: Rate): RateLimiterMemory =>
    new RateLimiterMemory({ points: rate.points, duration: rate.seconds })
  const pair = make(rates.signInPair)
  const byAccount = make(rates.signInAccount)
  const byAddress = make(rates.signInAddress)
  const steps = make(rates.signInSteps)
  const resets = make(rates.resets)
  const prompts = make(rates.prompts)
  const notificationTests = make(rates.notificationTests)
  /** Slowed sign-ins, by account. */
  const slow = new Pace({ everyMs: rates.signInSlow.everyMs, burst: 0 })
  /** Addresses from which an account has signed in, which are never slowed down. */
  const known = new LRUCache<string, true>({ max: KNOWN_ADDRESSES })

  const waitForTurn = async (who: string): Promise<void> => {
    const turn = slow.reserve(who, { longestMs: rates.signInSlow.longestMs })
    if ('refused' in turn) throw tooMany('Too many sign-ins of this account wait already', turn.retryMs)
    await sleep(turn.waitMs)
  }

  return {
    async signIn({ address, email }, attempt) {
      const who = email.toLowerCase()
      const here = `${address} ${who}`
      // The narrowest first: what it refuses must not use up what others share.
      await take(pair, here, 'Too many failed sign-ins')
      await take(byAddress, address, 'Too many failed sign-ins')
      const isOften = (await consume(byAccount, who)) !== undefined
      const uncount = (): Promise<unknown> => Promise.all([byAddress.reward(address), byAccount.reward(who)])
      try {
        if (isOften && !known.has(here)) await waitForTurn(who)
        const value = await attempt()
        known.set(here, true)
        await pair.delete(here)
        await uncount()
        return value
      } catch (error) {
        if (error instanceof SandlotError && error.code === 'rate_limited')
          await Promise.all([pair.reward(here), uncount()])
        throw error
      }
    },
    beginSignIn: (address) => take(steps, address, 'Too many sign-ins'),
    async beginReset(address, email) {
      await take(steps, address, 'Too many sign-ins')
      await take(resets, email.trim().toLowerCase(), 'Too many links for a new password')
    },
    prompt: (userId) => take(prompts, userId, 'Too many messages'),
    notificationTest: (userId) => take(notificationTests, userId, 'Too many tests'),
  }
}

async function take(limiter: RateLimiterMemory, key: string, what: string): Promise<void> {
  const used = await consume(limiter, key)
  if (used !== undefined) throw tooMany(what, used.msBeforeNext)
}

/** Undefined: it was within the limit. */
async function consume(limiter: RateLimiterMemory, key: string): Promise<RateLimiterRes | undefined> {
  try {
    await limiter.consume(key)
    return undefined
  } catch (refused) {
    if (refused instanceof RateLimiterRes) return refused
    throw refused
  }
}

export function tooMany(what: string, ms: number): SandlotError {
  const seconds = Math.max(1, Math.ceil(ms / 1000))
  const wait = seconds > 90 ? `${Math.ceil(seconds / 60)} minutes` : `${seconds} seconds`
  return new SandlotError('rate_limited', `${what}. Try again in ${wait}.`, { retryAfterSeconds: seconds })
}
