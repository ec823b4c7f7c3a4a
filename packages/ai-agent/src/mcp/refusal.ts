/** What a server's no means for whoever asked: that the user has to do something, that asking again helps, or what it was. */
import { NeedsAuth, ServerUnavailable, challengeOf, isUnauthorized, reasonOf } from './error.ts'
import type { ServerAccess } from './server-access.ts'

/**
 * `again`, or the error to go on with: `error` itself when it is no refusal. `how`: what a user can do who gets no link. Never
 * rejects.
 */
export async function refusalOf(
  error: unknown,
  access: ServerAccess | undefined,
  how: string | undefined,
): Promise<unknown> {
  const challenge = challengeOf(error)
  if (challenge !== undefined) {
    try {
      const wider = await access?.widen(challenge)
      const tooLittle = `its key does not allow this (${reasonOf(error)})`
      return wider ?? new ServerUnavailable(tooLittle, { cause: error })
    } catch (refused) {
      return refused
    }
  }
  if (!isUnauthorized(error)) return error
  return new NeedsAuth('the user has to sign in', { url: await access?.signInUrl(), how, cause: error })
}
