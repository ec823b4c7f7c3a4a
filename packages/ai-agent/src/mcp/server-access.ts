/** How a server that guards itself is asked: what goes with each request, and what happens when that is not enough. */
import type { AuthProvider, FetchLike } from '@modelcontextprotocol/client'
import {
  type Challenge,
  challengeOf,
  isUnauthorized,
  NeedsAuth,
  reasonOf,
  ServerUnavailable,
} from './error.ts'

export interface ServerAccess {
  /** For a transport: puts the token on every request, and renews it when it is refused. */
  provider(): AuthProvider
  /** Remembers what refused requests were made with; for the same transport. */
  watch(base: FetchLike): FetchLike
  /**
   * The server wants more than the token allows. `again`: there is a better token now, so ask once more. Else what the
   * user has to do. @throws ServerUnavailable when more was asked for already and it is still not enough.
   */
  widen(challenge: Challenge): Promise<'again' | NeedsAuth>
  /** The address at which the user signs in; undefined when there is nothing like that. Never rejects. */
  signInUrl(): Promise<string | undefined>
}

/** The token of each refused request, which the SDK does not pass on: a token is renewed once for all calls it failed. */
export class RefusedTokens {
  readonly #tokens = new WeakMap<Response, string>()

  watch(base: FetchLike): FetchLike {
    return async (url, init) => {
      const response = await base(url, init)
      const bearer = new Headers(init?.headers).get('authorization')?.replace(/^Bearer /, '')
      if (response.status === 401 && bearer !== undefined) this.#tokens.set(response, bearer)
      return response
    }
  }

  of(response: Response): string | undefined {
    return this.#tokens.get(response)
  }
}

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
