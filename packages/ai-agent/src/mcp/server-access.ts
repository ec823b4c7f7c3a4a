/**
 * Access to a server that needs authorization: what each request carries, and what to do when it is
 * refused.
 */
import type { AuthProvider, FetchLike } from '@modelcontextprotocol/client'
import {
  type Challenge,
  challengeOf,
  isUnauthorized,
  SignInRequiredError,
  reasonOf,
  ServerUnavailableError,
} from './error.ts'

export interface ServerAccess {
  /** For a transport: adds the token to each request, and renews it when it is refused. */
  provider(): AuthProvider
  /** Records the tokens of refused requests; for the same transport. */
  watch(base: FetchLike): FetchLike
  /**
   * The server needs more scopes than the token has. `again`: there is a better token, so repeat
   * the request. Otherwise what the user has to do. Throws `ServerUnavailableError` when more was
   * requested before without effect.
   */
  widen(challenge: Challenge): Promise<'again' | SignInRequiredError>
  /** The URL of the user's sign-in; undefined when there is none. Never rejects. */
  signInUrl(): Promise<string | undefined>
}

/**
 * The token of each refused request, which the SDK does not pass on: a token is renewed once for
 * all calls that it failed.
 */
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
 * `again`, or the error to go on with: `error` itself when it is no refusal. `how`: instructions
 * for a user without a link. Never rejects.
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
      return wider ?? new ServerUnavailableError(tooLittle, { cause: error })
    } catch (refused) {
      return refused
    }
  }
  if (!isUnauthorized(error)) return error
  return new SignInRequiredError('the user has to sign in', {
    url: await access?.signInUrl(),
    how,
    cause: error,
  })
}
