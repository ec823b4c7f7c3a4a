/** So many lookups of one user in a minute. The only file here that imports rate-limiter-flexible. */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { ToolFailure } from './tool-failure.ts'

/** A function that takes one lookup of this user. It throws `rate_limited` when the minute is used up. */
export function makeUserLimit(perMinute: number): (userId: string) => Promise<void> {
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
