/**
 * One user's access to one server with OAuth: the sign-in link, a wider one when a call needs more
 * scopes, and the tokens. Calls the steps of the SDK's `auth()` one by one, because `auth()` starts
 * a new sign-in when a renewal fails for a moment, sends a refused code a second time, and holds
 * one sign-in at a time.
 */
import { randomBytes } from 'node:crypto'
import {
  type AuthProvider,
  exchangeAuthorization,
  extractWWWAuthenticateParams,
  type FetchLike,
  type OAuthClientInformationMixed,
  startAuthorization,
  validateAuthorizationResponseIssuer,
} from '@modelcontextprotocol/client'
import { type Challenge, SignInRequiredError, ServerUnavailableError } from '../error.ts'
import { type Authority, findAuthority, includesScopes, joinScopes } from './authority.ts'
import { clientFor, clientMetadata, type OwnClient, ownClient } from './client.ts'
import { type Flow, Flows } from './flows.ts'
import type { OAuthRecords } from './records.ts'
import { UserTokens } from './tokens.ts'
import { RefusedTokens, type ServerAccess } from '../server-access.ts'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'

interface OAuthAccessOptions {
  url: string
  /** The redirect target of the authorization server; read when a sign-in begins. */
  redirectUrl: () => Promise<string>
  /** The URL of the client document; undefined when it cannot be fetched from outside. */
  documentUrl: string | undefined
  /** The client that the operator registered. */
  own: OwnClient | undefined
  /** The only allowed authority; undefined: the server names it. */
  issuer: string | undefined
  scope: string | undefined
  records: OAuthRecords
  fetch: FetchLike
  /** Epoch milliseconds. */
  now: () => number
}

/** Milliseconds that a sign-in link is valid. */
const LINK_MS = 600_000
/** A link with less time left is not shown again: signing in takes a while. Milliseconds. */
const LEFT_MS = 120_000
/**
 * The most requests to a user for the same scopes; twice, because users can clear boxes at the
 * authority.
 */
const MAX_ASKED = 2
/** After this time the user may be asked again. Milliseconds. */
const ASKED_MS = 3_600_000
/** Different scopes that a server may need more of. */
const MAX_WANTED = 32

export class OAuthAccess implements ServerAccess {
  readonly #options: OAuthAccessOptions
  readonly #tokens: UserTokens
  readonly #refused = new RefusedTokens()
  readonly #flows: Flows
  readonly #queue = new SerialQueue()
  /** By scope: how often the user returned from a sign-in for it. */
  readonly #asked = new Map<string, { times: number; since: number }>()

  constructor(options: OAuthAccessOptions) {
    this.#options = options
    const { url, redirectUrl, issuer, own, records, fetch, now } = options
    this.#flows = new Flows({
      read: () => records.read('sign-ins'),
      save: (flows) => records.save('sign-ins', flows),
      about: async () => JSON.stringify([url, await redirectUrl(), issuer, own?.clientId]),
      now,
    })
    this.#tokens = new UserTokens({
      read: () => records.read('tokens'),
      save: (tokens) => records.save('tokens', tokens),
      url,
      fetch,
      now,
    })
  }

  provider(): AuthProvider {
    return {
      token: async () => {
        if (await this.#tokens.isEnding()) await this.#renewOrAsk({})
        return this.#tokens.current()
      },
      onUnauthorized: async ({ response }) => {
        const used = this.#refused.of(response)
        const now = await this.#tokens.current()
        // A concurrent call has renewed it.
        if (used !== undefined && now !== undefined && used !== now) return
        await this.#renewOrAsk(extractWWWAuthenticateParams(response))
      },
    }
  }

  /** True if there is a token, valid or not. */
  async isSignedIn(): Promise<boolean> {
    return (await this.#tokens.current()) !== undefined
  }

  /** Forgets the tokens, and links that were given out. */
  async signOut(): Promise<void> {
    const { records } = this.#options
    await records.save('tokens', undefined)
    await records.save('sign-ins', undefined)
    this.#asked.clear()
  }

  watch(base: FetchLike): FetchLike {
    return this.#refused.watch(base)
  }

  async signInUrl(): Promise<string | undefined> {
    try {
      return await this.#link({})
    } catch {
      // The problem is reported when the server's tools are listed.
      return undefined
    }
  }

  async widen(challenge: Challenge): Promise<SignInRequiredError> {
    const wanted = joinScopes(challenge.scope)
    const now = this.#options.now()
    for (const [scope, { since }] of this.#asked) if (since + ASKED_MS < now) this.#asked.delete(scope)
    const asked = this.#asked.get(wanted ?? '') ?? { times: 0, since: now }
    this.#asked.set(wanted ?? '', asked)
    if (asked.times >= MAX_ASKED || this.#asked.size > MAX_WANTED)
      throw new ServerUnavailableError(
        `it wants ${shortened(wanted)}, and the user has allowed that already without effect; ask those who run it`,
      )
    const url = await this.#link({ ...challenge, scope: joinScopes(await this.#tokens.scope(), wanted) })
    return new SignInRequiredError(`the user has to allow ${shortened(wanted)}`, {
      url,
      wanted: shortened(wanted),
    })
  }

  /**
   * Takes the pending sign-in with this state: only once, however it ends, also after a restart of
   * the agent.
   */
  take(state: string): Promise<Flow | undefined> {
    return this.#flows.take(state)
  }

  /**
   * Finishes a sign-in. Resolves with undefined, or with the authority's reason for a refusal.
   * Rejects when the answer is from another authority, or is not accepted.
   */
  async finish(flow: Flow, answer: URLSearchParams): Promise<string | undefined> {
    const { authority, verifier, scope } = flow
    const { metadata, url, resource } = authority
    const iss = answer.get('iss') ?? undefined
    // First of all: another authority's answer must be neither used nor shown.
    validateAuthorizationResponseIssuer({
      iss,
      expectedIssuer: metadata?.issuer,
      issParameterSupported: metadata?.authorization_response_iss_parameter_supported === true,
    })
    const code = answer.get('code')
    if (code === null) return answer.get('error_description') ?? answer.get('error') ?? 'no reason was given'
    const { redirectUrl, fetch } = this.#options
    const tokens = await exchangeAuthorization(url, {
      metadata,
      resource,
      iss,
      clientInformation: flow.client ?? this.#ownClient(authority),
      authorizationCode: code,
      codeVerifier: verifier,
      redirectUri: await redirectUrl(),
      fetchFn: fetch,
    })
    await this.#tokens.save(tokens, authority.issuer, scope)
    for (const [wanted, asked] of this.#asked) if (includesScopes(scope, wanted)) asked.times++
    return undefined
  }

  // ── Signing in ─────────────────────────────────────────────────────────────────────────────────

  /** Throws `SignInRequiredError` when the user has to act. */
  async #renewOrAsk(challenge: Challenge): Promise<void> {
    if (await this.#tokens.renew(() => this.#parties(challenge))) return
    const url = await this.#link({ ...challenge, scope: joinScopes(challenge.scope) })
    throw new SignInRequiredError('the user has to sign in', { url })
  }

  /** One at a time; a link that asks for at least these scopes is returned again. */
  #link(challenge: Challenge): Promise<string> {
    return this.#queue.run(async () => {
      const pending = await this.#flows.pending()
      const known = pending.findLast(
        ({ scope, endsAt }) =>
          this.#options.now() + LEFT_MS < endsAt && includesScopes(scope, challenge.scope),
      )
      if (known !== undefined) return known.url
      const flow = await this.#begin(challenge, pending)
      await this.#flows.add(flow)
      return flow.url
    })
  }

  async #begin(challenge: Challenge, pending: readonly Flow[]): Promise<Flow> {
    const { authority, client } = await this.#parties(challenge)
    const { scope: configured, redirectUrl, own, now } = this.#options
    const first = configured ?? challenge.scope ?? authority.scope
    // Include the scopes that other calls wait for: then one consent is enough.
    const scope = withRefresh(
      joinScopes(first, challenge.scope, ...pending.map((flow) => flow.scope)),
      authority,
    )
    const state = randomBytes(24).toString('base64url')
    const { authorizationUrl, codeVerifier } = await startAuthorization(authority.url, {
      metadata: authority.metadata,
      resource: authority.resource,
      scope,
      clientInformation: client,
      redirectUrl: await redirectUrl(),
      state,
    })
    const url = authorizationUrl.href
    const endsAt = now() + LINK_MS
    const begun = { state, url, verifier: codeVerifier, authority, scope, endsAt }
    return own === undefined ? { ...begun, client } : begun
  }

  #ownClient(authority: Flow['authority']): OAuthClientInformationMixed {
    const { own, url: serverUrl, issuer } = this.#options
    if (own === undefined) throw new Error('this sign-in was begun as another client')
    return ownClient(authority, own, { serverUrl, issuer })
  }

  async #parties({
    resourceMetadataUrl,
    scope,
  }: Challenge): Promise<{ authority: Authority; client: OAuthClientInformationMixed }> {
    const { url: serverUrl, redirectUrl, documentUrl, own, issuer, records, fetch } = this.#options
    const authority = await findAuthority({ serverUrl, resourceMetadataUrl, issuer, fetch })
    const client = await clientFor(authority, {
      serverUrl,
      own,
      issuer,
      documentUrl,
      // Every scope that may be requested later: some authorities grant no more than registered.
      metadata: clientMetadata(await redirectUrl(), joinScopes(this.#options.scope, authority.scope, scope)),
      read: () => records.read('client'),
      save: (registration) => records.save('client', registration),
      fetch,
    })
    return { authority, client }
  }
}

/** Adds the scope for access without the user, if the authority knows it. */
function withRefresh(scope: string | undefined, { metadata }: Authority): string | undefined {
  const supported = metadata?.scopes_supported ?? []
  return scope !== undefined && supported.includes('offline_access')
    ? joinScopes(scope, 'offline_access')
    : scope
}

function shortened(scope: string | undefined): string {
  return scope === undefined ? 'more, without saying what' : scope.slice(0, 200)
}
