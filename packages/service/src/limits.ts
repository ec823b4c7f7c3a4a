/** The only file that imports rate-limiter-flexible. Kept in memory: one service process per deployment so far. */
import { SandlotError } from '@sandlot/shared/errors'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'

/** Points in so many seconds. */
export interface Rate {
  points: number
  seconds: number
}

export interface LimitRates {
  /** Failed sign-ins of one account from one address. */
  signInPair: Rate
  /** Failed sign-ins of one account from anywhere. Higher, or anybody could lock anybody out. */
  signInAccount: Rate
  /** Failed sign-ins from one address. */
  signInAddress: Rate
  /** Prompts of one user. */
  prompts: Rate
}

export const DEFAULT_RATES: LimitRates = {
  signInPair: { points: 10, seconds: 15 * 60 },
  signInAccount: { points: 50, seconds: 15 * 60 },
  signInAddress: { points: 50, seconds: 15 * 60 },
  prompts: { points: 60, seconds: 60 },
}

export interface Limits {
  /** Throws `rate_limited` when there were too many failures. */
  beforeSignIn(address: string, email: string): Promise<void>
  signInFailed(address: string, email: string): Promise<void>
  signInSucceeded(address: string, email: string): Promise<void>
  /** Throws `rate_limited`. */
  prompt(userId: string): Promise<void>
}

export function makeLimits(rates: LimitRates = DEFAULT_RATES): Limits {
  const make = (rate: Rate): RateLimiterMemory =>
    new RateLimiterMemory({ points: rate.points, duration: rate.seconds })
  const pair = make(rates.signInPair)
  const byAccount = make(rates.signInAccount)
  const byAddress = make(rates.signInAddress)
  const prompts = make(rates.prompts)

  const keysOf = (address: string, email: string): [RateLimiterMemory, string][] => {
    const who = email.toLowerCase()
    return [
      [pair, `${address} ${who}`],
      [byAccount, who],
      [byAddress, address],
    ]
  }

  return {
    async beforeSignIn(address, email) {
      for (const [limiter, key] of keysOf(address, email)) {
        const used = await limiter.get(key)
        if (used !== null && used.remainingPoints <= 0) throw tooMany('Too many failed sign-ins', used)
      }
    },
    async signInFailed(address, email) {
      for (const [limiter, key] of keysOf(address, email)) await limiter.penalty(key)
    },
    async signInSucceeded(address, email) {
      await pair.delete(`${address} ${email.toLowerCase()}`)
    },
    async prompt(userId) {
      try {
        await prompts.consume(userId)
      } catch (refused) {
        if (refused instanceof RateLimiterRes) throw tooMany('Too many messages', refused)
        throw refused
      }
    },
  }
}

function tooMany(what: string, used: RateLimiterRes): SandlotError {
  const seconds = Math.max(1, Math.ceil(used.msBeforeNext / 1000))
  const wait = seconds > 90 ? `${Math.ceil(seconds / 60)} minutes` : `${seconds} seconds`
  return new SandlotError('rate_limited', `${what}. Try again in ${wait}.`)
}
