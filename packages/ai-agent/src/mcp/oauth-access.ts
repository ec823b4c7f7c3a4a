/**
 * One user's access to one server that wants OAuth: the address to sign in at, the tokens (kept as a secret of the user),
 * one refresh for all calls that need it at the same time.
 */
import { randomBytes } from 'node:crypto'
import {
  type AuthProvider,
  type FetchLike,
  type OAuthClientMetadata,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
  auth,
  extractWWWAuthenticateParams,
} from '@modelcontextprotocol/client'
import { z } from 'zod'
import { NeedsAuth } from './mcp-error.ts'

/** Where a user's tokens are kept: encrypted, by name. */
export interface SecretStore {
  get(userId: string, name: string): Promise<string | undefined>
  /** Undefined removes it. */
  set(userId: string, name: string, value: string | undefined): Promise<void>
}

export interface OAuthAccessOptions {
  userId: string
  server: string
  url: string
  /** Where the authorization server sends the user back to. */
  redirectUrl: string
  clientId: string | undefined
  clientSecret: string | undefined
  scope: string | undefined
  secrets: SecretStore
  fetch: FetchLike
  /** Epoch milliseconds. */
  now: () => number
}

/** A link to sign in is good for this long. */
const LINK_MS = 600_000
/** A token that is about to end is renewed before it is used. */
const EARLY_MS = 30_000

const kept = z.object({
  tokens: z.looseObject({ access_token: z.string(), token_type: z.string() }),
  endsAt: z.number().optional(),
})

interface Authorizing {
  resourceMetadataUrl?: URL
  scope?: string
  /** A new sign-in even where a refresh would do. */
  forceReauthorization?: boolean
}

interface Flow {
  state: string
  url?: string
  verifier?: string
  discovery?: OAuthDiscoveryState
  endsAt: number
}

export class OAuthAccess {
  readonly #options: OAuthAccessOptions
  #flow: Flow | undefined
  #working: Promise<void> | undefined
  /** The token with which each refused request was made. */
  readonly #refused = new WeakMap<Response, string>()

  constructor(options: OAuthAccessOptions) {
    this.#options = options
  }

  /** For a transport: puts the token on every request, and renews it when it is refused. */
  provider(): AuthProvider {
    return {
      token: () => this.#token(),
      onUnauthorized: async ({ response }) => {
        const used = this.#refused.get(response)
        const now = (await this.#tokens())?.tokens.access_token
        // Another call has renewed it while this one was on its way.
        if (used !== undefined && now !== undefined && used !== now) return
        const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
        await this.#authorize({
          ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
          ...(scope === undefined ? {} : { scope }),
        })
      },
    }
  }

  /** Remembers what refused requests were made with; for the same transport. */
  watch(base: FetchLike): FetchLike {
    return async (url, init) => {
      const response = await base(url, init)
      const bearer = new Headers(init?.headers).get('authorization')?.replace(/^Bearer /, '')
      if (response.status === 401 && bearer !== undefined) this.#refused.set(response, bearer)
      return response
    }
  }

  /** The link of the sign-in that is under way, or of a new one; undefined when the server offers none. Never rejects. */
  async signInUrl(scope?: string): Promise<string | undefined> {
    try {
      if (this.#link() === undefined)
        await this.#authorize({ forceReauthorization: true, ...(scope === undefined ? {} : { scope }) })
    } catch (error) {
      if (error instanceof NeedsAuth) return error.url
      return undefined
    }
    return this.#link()
  }

  /** True when this came out of our own sign-in. */
  isOurs(state: string): boolean {
    return this.#flow?.state === state && this.#options.now() < this.#flow.endsAt
  }

  /** The user is back with a code. Rejects when the server does not take it. */
  async finish(code: string, issuer: string | undefined): Promise<void> {
    const { url, fetch } = this.#options
    await auth(this.#sdkProvider(), {
      serverUrl: url,
      authorizationCode: code,
      fetchFn: fetch,
      ...(issuer === undefined ? {} : { iss: issuer }),
    })
    this.#flow = undefined
  }

  async #token(): Promise<string | undefined> {
    const known = await this.#tokens()
    if (known === undefined) return undefined
    const ending = known.endsAt !== undefined && known.endsAt - EARLY_MS < this.#options.now()
    if (!ending || known.tokens.refresh_token === undefined) return known.tokens.access_token
    await this.#authorize({})
    return (await this.#tokens())?.tokens.access_token
  }

  /** One at a time: who comes meanwhile waits for the same. @throws NeedsAuth when the user has to do something */
  async #authorize(how: Authorizing): Promise<void> {
    this.#working ??= this.#work(how).finally(() => {
      this.#working = undefined
    })
    await this.#working
  }

  async #work(how: Authorizing): Promise<void> {
    const link = this.#link()
    const { tokens } = (await this.#tokens()) ?? {}
    // Asked a moment ago, and nothing to renew: the same link again.
    if (link !== undefined && tokens?.refresh_token === undefined)
      throw new NeedsAuth('the user has to sign in', link)
    const { url, fetch } = this.#options
    const result = await auth(this.#sdkProvider(), { serverUrl: url, fetchFn: fetch, ...how })
    if (result !== 'AUTHORIZED') throw new NeedsAuth('the user has to sign in', this.#link())
  }

  #link(): string | undefined {
    const flow = this.#flow
    return flow !== undefined && this.#options.now() < flow.endsAt ? flow.url : undefined
  }

  #begin(): Flow {
    this.#flow = {
      ...this.#flow,
      state: randomBytes(24).toString('base64url'),
      endsAt: this.#options.now() + LINK_MS,
    }
    return this.#flow
  }

  #sdkProvider(): OAuthClientProvider {
    const { redirectUrl, clientId, clientSecret, scope } = this.#options
    const flow = (): Flow => this.#flow ?? this.#begin()
    const clientMetadata: OAuthClientMetadata = {
      client_name: 'Sandlot',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: clientSecret === undefined ? 'none' : 'client_secret_basic',
      ...(scope === undefined ? {} : { scope }),
    }
    return {
      redirectUrl,
      clientMetadata,
      state: () => this.#begin().state,
      clientInformation: async (about) => {
        if (clientId === undefined) return this.#read<StoredOAuthClientInformation>('client')
        return {
          client_id: clientId,
          ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
          ...(about === undefined ? {} : { issuer: about.issuer }),
        }
      },
      ...(clientId === undefined
        ? { saveClientInformation: (client) => this.#keep('client', JSON.stringify(client)) }
        : {}),
      tokens: async () => (await this.#tokens())?.tokens,
      saveTokens: (tokens) => {
        const endsAt =
          tokens.expires_in === undefined ? undefined : this.#options.now() + tokens.expires_in * 1_000
        return this.#keep('tokens', JSON.stringify({ tokens, endsAt }))
      },
      redirectToAuthorization: (url) => {
        flow().url = url.href
      },
      saveCodeVerifier: (verifier) => {
        flow().verifier = verifier
      },
      codeVerifier: () => flow().verifier ?? '',
      saveDiscoveryState: (discovery) => {
        flow().discovery = discovery
      },
      discoveryState: () => this.#flow?.discovery,
      invalidateCredentials: async (what) => {
        if (what === 'tokens' || what === 'all') await this.#keep('tokens', undefined)
        if (what === 'client' || what === 'all') await this.#keep('client', undefined)
        if (what === 'discovery' || what === 'all') this.#flow = undefined
      },
    }
  }

  // ── Kept ──────────────────────────────────────────────────────────────────────────────────────────────

  async #tokens(): Promise<{ tokens: StoredOAuthTokens; endsAt?: number | undefined } | undefined> {
    const read = kept.safeParse(await this.#read('tokens'))
    return read.success ? read.data : undefined
  }

  async #read<T>(what: 'tokens' | 'client'): Promise<T | undefined> {
    const { secrets, userId } = this.#options
    const text = await secrets.get(userId, this.#name(what))
    return text === undefined ? undefined : (JSON.parse(text) as T)
  }

  async #keep(what: 'tokens' | 'client', value: string | undefined): Promise<void> {
    const { secrets, userId } = this.#options
    await secrets.set(userId, this.#name(what), value)
  }

  #name(what: 'tokens' | 'client'): string {
    return `mcp.${this.#options.server}.${what}`
  }
}
