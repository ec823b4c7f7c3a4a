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
  /**
   * Counts a failure before it is known to be one: many tries at once would else all pass before the first has failed.
   * Throws `rate_limited` when there were too many.
   */
  beforeSignIn(address: string, email: string): Promise<void>
  /** The password was right: what was counted is taken back, and the earlier failures of this pair are forgiven. */
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

  return {
    async beforeSignIn(address, email) {
      const who = email.toLowerCase()
      // The narrowest first: what it refuses must not use up what others share.
      await take(pair, `${address} ${who}`, 'Too many failed sign-ins')
      await take(byAddress, address, 'Too many failed sign-ins')
      await take(byAccount, who, 'Too many failed sign-ins')
    },
    async signInSucceeded(address, email) {
      const who = email.toLowerCase()
      await pair.delete(`${address} ${who}`)
      await byAddress.reward(address)
      await byAccount.reward(who)
    },
    prompt: (userId) => take(prompts, userId, 'Too many messages'),
  }
}

async function take(limiter: RateLimiterMemory, key: string, what: string): Promise<void> {
  try {
    await limiter.consume(key)
  } catch (refused) {
    if (refused instanceof RateLimiterRes) throw tooMany(what, refused)
    throw refused
  }
}

function tooMany(what: string, used: RateLimiterRes): SandlotError {
  const seconds = Math.max(1, Math.ceil(used.msBeforeNext / 1000))
  const wait = seconds > 90 ? `${Math.ceil(seconds / 60)} minutes` : `${seconds} seconds`
  return new SandlotError('rate_limited', `${what}. Try again in ${wait}.`)
}
