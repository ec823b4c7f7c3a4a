/**
 * The deployment's own access to a server, with client credentials. The SDK's providers sign the
 * request; this adds one request for all waiting calls, and a wider scope on demand, which its
 * `auth()` does not do.
 */
import {
  type AuthProvider,
  ClientCredentialsProvider,
  extractWWWAuthenticateParams,
  type FetchLike,
  fetchToken,
  type OAuthClientProvider,
  OAuthError,
  PrivateKeyJwtProvider,
} from '@modelcontextprotocol/client'
import { type Challenge, type SignInRequiredError, reasonOf, ServerUnavailableError } from '../error.ts'
import { type Authority, findAuthority, includesScopes, joinScopes } from './authority.ts'
import { ownClient } from './client.ts'
import { RefusedTokens, type ServerAccess } from '../server-access.ts'

interface MachineAccessOptions {
  url: string
  clientId: string
  /** A shared secret, or a private key (PEM, PKCS #8) that signs the request. */
  proof: { secret: string } | { privateKey: string; algorithm: string }
  issuer: string | undefined
  scope: string | undefined
  fetch: FetchLike
  /** Epoch milliseconds. */
  now: () => number
}

/** Milliseconds. */
const EARLY_MS = 30_000
/** A token refused this soon after it was issued: another would be refused too. Milliseconds. */
const FRESH_MS = 10_000

interface Token {
  text: string
  scope: string | undefined
  since: number
  endsAt: number
}

export class MachineAccess implements ServerAccess {
  readonly #options: MachineAccessOptions
  readonly #refused = new RefusedTokens()
  #token: Token | undefined
  #getting: Promise<Token> | undefined

  constructor(options: MachineAccessOptions) {
    this.#options = options
  }

  provider(): AuthProvider {
    return {
      token: async () => {
        // The first request has no token; its refusal names the authority.
        if (this.#token === undefined) return undefined
        if (this.#token.endsAt - EARLY_MS < this.#options.now()) await this.#get({})
        return this.#token.text
      },
      onUnauthorized: async ({ response }) => {
        const used = this.#refused.of(response)
        if (this.#token !== undefined && used !== this.#token.text) return
        if (this.#token !== undefined && this.#options.now() - this.#token.since < FRESH_MS)
          throw new ServerUnavailableError(
            'it refuses a token that it was just given; look at its auth settings',
          )
        await this.#get(extractWWWAuthenticateParams(response))
      },
    }
  }

  watch(base: FetchLike): FetchLike {
    return this.#refused.watch(base)
  }

  async widen(challenge: Challenge): Promise<'again' | SignInRequiredError> {
    const wanted = joinScopes(challenge.scope)
    const before = this.#token?.scope
    if (wanted === undefined || includesScopes(before, wanted)) throw refused(wanted)
    // The request in flight may be for another scope, and may be refused.
    while (this.#getting !== undefined) {
      await Promise.allSettled([this.#getting])
      if (includesScopes(this.#token?.scope, wanted)) return 'again'
    }
    const { scope } = await this.#get({ ...challenge, scope: joinScopes(this.#token?.scope, wanted) })
    if (!includesScopes(scope, wanted)) throw refused(wanted)
    return 'again'
  }

  async signInUrl(): Promise<undefined> {
    return undefined
  }

  /** One request at a time, for all callers. */
  #get(challenge: Challenge): Promise<Token> {
    this.#getting ??= this.#ask(challenge).finally(() => {
      this.#getting = undefined
    })
    return this.#getting
  }

  async #ask(challenge: Challenge): Promise<Token> {
    const { url: serverUrl, issuer, scope: configured, fetch, now } = this.#options
    const { resourceMetadataUrl } = challenge
    const authority = await findAuthority({ serverUrl, resourceMetadataUrl, issuer, fetch })
    const { metadata, resource } = authority
    const scope = joinScopes(
      configured ?? challenge.scope ?? authority.scope,
      challenge.scope,
      this.#token?.scope,
    )
    try {
      const tokens = await fetchToken(this.#client(authority), authority.url, {
        metadata,
        resource,
        scope,
        fetchFn: fetch,
      })
      const endsAt = tokens.expires_in === undefined ? Infinity : now() + tokens.expires_in * 1_000
      this.#token = { text: tokens.access_token, scope: tokens.scope ?? scope, since: now(), endsAt }
      return this.#token
    } catch (error) {
      const said = error instanceof OAuthError ? `${error.code}: ${reasonOf(error)}` : reasonOf(error)
      throw new ServerUnavailableError(`its sign-in gives no token to ${this.#options.clientId} (${said})`, {
        cause: error,
      })
    }
  }

  #client(authority: Authority): OAuthClientProvider {
    const { url: serverUrl, clientId, proof, issuer } = this.#options
    const expectedIssuer = authority.metadata?.issuer ?? authority.url
    if (!('secret' in proof)) return new PrivateKeyJwtProvider({ clientId, ...proof, expectedIssuer })
    const clientSecret = proof.secret
    ownClient(authority, { clientId, clientSecret }, { serverUrl, issuer })
    return new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer })
  }
}

function refused(wanted: string | undefined): ServerUnavailableError {
  return new ServerUnavailableError(`it wants ${wanted ?? 'more'}, which this Sandlot is not allowed there`)
}
