/** A user's tokens for one server: kept as a secret of theirs, renewed once for all calls that need it at the same time. */
import {
  type FetchLike,
  type OAuthClientInformationMixed,
  type OAuthTokens,
  OAuthError,
  refreshAuthorization,
} from '@modelcontextprotocol/client'
import { z } from 'zod'
import { ServerUnavailable, reasonOf } from '../error.ts'
import { type Authority, sameIssuer } from './authority.ts'

/** A token that is about to end is renewed before it is used. Milliseconds. */
const EARLY_MS = 30_000
/** What an authority says of a refresh token, or of us, that is good for nothing any more. */
const OVER = ['invalid_grant', 'invalid_client', 'unauthorized_client', 'invalid_scope', 'invalid_target']

const kept = z.object({
  tokens: z.looseObject({
    access_token: z.string(),
    token_type: z.string(),
    refresh_token: z.string().optional(),
    scope: z.string().optional(),
  }),
  /** Whose they are; nobody else gets to see them. Absent in what was kept before this was known. */
  issuer: z.string().optional(),
  /** The server that they are for: a name that stands for another server later has none. Absent like `issuer`. */
  url: z.string().optional(),
  endsAt: z.number().optional(),
})
type Kept = z.output<typeof kept>

export interface OAuthTokensOptions {
  read: () => Promise<string | undefined>
  /** Undefined removes them. */
  keep: (tokens: string | undefined) => Promise<void>
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

  /** What they are good for, as far as anybody said. */
  async scope(): Promise<string | undefined> {
    return (await this.#read())?.tokens.scope
  }

  async current(): Promise<string | undefined> {
    return (await this.#read())?.tokens.access_token
  }

  /** True when there is one, and it ends soon or has ended, and could be renewed. */
  async isEnding(): Promise<boolean> {
    const known = await this.#read()
    const ending = known?.endsAt !== undefined && known.endsAt - EARLY_MS < this.#options.now()
    return ending && known.tokens.refresh_token !== undefined
  }

  /** `asked`: the scope that was asked for; an authority that grants just that need not say so. */
  async save(tokens: OAuthTokens, issuer: string, asked: string | undefined): Promise<void> {
    const endsAt =
      tokens.expires_in === undefined ? undefined : this.#options.now() + tokens.expires_in * 1_000
    const scope = tokens.scope ?? asked
    const all = { ...tokens, scope }
    await this.#options.keep(JSON.stringify({ tokens: all, issuer, url: this.#options.url, endsAt }))
  }

  /**
   * New ones for old, one attempt for all who need it now. False when the user has to sign in again; the old ones are gone
   * then. @throws ServerUnavailable when the authority did not answer: the old ones may be good later.
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
    // The server sends to another authority now, or to one of which nobody knows whether it is another: what the first one
    // gave is not shown to it.
    if (known?.issuer === undefined || !sameIssuer(known.issuer, authority.issuer)) return false
    try {
      const tokens = await refreshAuthorization(authority.url, {
        metadata: authority.metadata,
        resource: authority.resource,
        clientInformation: client,
        refreshToken,
        fetchFn: this.#options.fetch,
      })
      // Somebody who signed in meanwhile has better ones.
      if ((await this.#read())?.tokens.refresh_token === refreshToken)
        await this.save(tokens, authority.issuer, known.tokens.scope)
      return true
    } catch (error) {
      if (error instanceof OAuthError && OVER.includes(error.code)) {
        if ((await this.#read())?.tokens.refresh_token === refreshToken) await this.#options.keep(undefined)
        return false
      }
      throw new ServerUnavailable(`its sign-in did not renew the access: ${reasonOf(error)}`, {
        cause: error,
      })
    }
  }

  async #read(): Promise<Kept | undefined> {
    const text = await this.#options.read()
    const read = text === undefined ? undefined : kept.safeParse(JSON.parse(text)).data
    return read?.url === undefined || read.url === this.#options.url ? read : undefined
  }
}
