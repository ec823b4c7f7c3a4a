/**
 * A user's tokens for one server: stored as a secret of theirs, and renewed once for all concurrent
 * calls.
 */
import {
  type FetchLike,
  type OAuthClientInformationMixed,
  type OAuthTokens,
  OAuthError,
  refreshAuthorization,
} from '@modelcontextprotocol/client'
import { z } from 'zod'
import { ServerUnavailableError, reasonOf } from '../error.ts'
import { type Authority, sameIssuer } from './authority.ts'

/** A token is renewed this long before it expires. Milliseconds. */
const EARLY_MS = 30_000
/** OAuth errors that make a refresh token useless for good. */
const FATAL_ERRORS = [
  'invalid_grant',
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
  'invalid_target',
]

const stored = z.object({
  tokens: z.looseObject({
    access_token: z.string(),
    token_type: z.string(),
    refresh_token: z.string().optional(),
    scope: z.string().optional(),
  }),
  /**
   * The authority they belong to; they are sent to no other. Absent in records of earlier versions.
   */
  issuer: z.string().optional(),
  /**
   * The server they are for: when a name stands for another server, they are not used. Absent like
   * `issuer`.
   */
  url: z.string().optional(),
  endsAt: z.number().optional(),
})
type Stored = z.output<typeof stored>

interface OAuthTokensOptions {
  read: () => Promise<string | undefined>
  /** Undefined removes them. */
  save: (tokens: string | undefined) => Promise<void>
  /** The server's address. */
  url: string
  fetch: FetchLike
  /** Epoch milliseconds. */
  now: () => number
}

export class UserTokens {
  readonly #options: OAuthTokensOptions
  #renewing: Promise<boolean> | undefined

  constructor(options: OAuthTokensOptions) {
    this.#options = options
  }

  /** The granted scopes, if known. */
  async scope(): Promise<string | undefined> {
    return (await this.#read())?.tokens.scope
  }

  async current(): Promise<string | undefined> {
    return (await this.#read())?.tokens.access_token
  }

  /** True when the token expires soon or has expired, and can be renewed. */
  async isEnding(): Promise<boolean> {
    const known = await this.#read()
    const ending = known?.endsAt !== undefined && known.endsAt - EARLY_MS < this.#options.now()
    return ending && known.tokens.refresh_token !== undefined
  }

  /** `asked`: the requested scope; an authority that grants just that need not repeat it. */
  async save(tokens: OAuthTokens, issuer: string, asked: string | undefined): Promise<void> {
    const endsAt =
      tokens.expires_in === undefined ? undefined : this.#options.now() + tokens.expires_in * 1_000
    const scope = tokens.scope ?? asked
    const all = { ...tokens, scope }
    await this.#options.save(JSON.stringify({ tokens: all, issuer, url: this.#options.url, endsAt }))
  }

  /**
   * Renews the tokens, once for all callers. False when the user has to sign in again; the old ones
   * are removed then. Throws `ServerUnavailableError` when the authority did not answer: the old
   * ones stay. The SDK's `auth()` would start a new sign-in then.
   */
  renew(
    find: () => Promise<{ authority: Authority; client: OAuthClientInformationMixed }>,
  ): Promise<boolean> {
    this.#renewing ??= this.#renew(find).finally(() => {
      this.#renewing = undefined
    })
    return this.#renewing
  }

  async #renew(
    find: () => Promise<{ authority: Authority; client: OAuthClientInformationMixed }>,
  ): Promise<boolean> {
    const known = await this.#read()
    const refreshToken = known?.tokens.refresh_token
    if (refreshToken === undefined) return false
    const { authority, client } = await find()
    // The server names another authority now, or an unknown one: it must not get the first one's
    // token.
    if (known?.issuer === undefined || !sameIssuer(known.issuer, authority.issuer)) return false
    try {
      const tokens = await refreshAuthorization(authority.url, {
        metadata: authority.metadata,
        resource: authority.resource,
        clientInformation: client,
        refreshToken,
        fetchFn: this.#options.fetch,
      })
      // A sign-in that finished in between has newer ones.
      if ((await this.#read())?.tokens.refresh_token === refreshToken)
        await this.save(tokens, authority.issuer, known.tokens.scope)
      return true
    } catch (error) {
      if (error instanceof OAuthError && FATAL_ERRORS.includes(error.code)) {
        if ((await this.#read())?.tokens.refresh_token === refreshToken) await this.#options.save(undefined)
        return false
      }
      throw new ServerUnavailableError(`its sign-in did not renew the access: ${reasonOf(error)}`, {
        cause: error,
      })
    }
  }

  async #read(): Promise<Stored | undefined> {
    const text = await this.#options.read()
    const read = text === undefined ? undefined : stored.safeParse(JSON.parse(text)).data
    return read?.url === undefined || read.url === this.#options.url ? read : undefined
  }
}
