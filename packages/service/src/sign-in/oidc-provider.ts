/**
 * One provider of OpenID Connect: its discovery, which is tried again until it succeeds, the
 * exchange of a code, and the verification of ID tokens. The only file that imports jose.
 */
import { createHash } from 'node:crypto'
import { backoffMs } from '@sandlot/shared/async/backoff'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { Fetch } from '@sandlot/shared/node/safe-fetch'
import {
  type OidcDiscovery,
  fetchProblem,
  providerFetch,
  readDiscovery,
} from '@sandlot/shared/node/oidc-discovery'
import { storableText } from '@sandlot/shared/base/storable-text'
import type { OidcProviderConfig } from '@sandlot/shared/account/oidc-config'
import type { ExternalIdentity, ExternalProvider, ExternalTokens } from '@sandlot/storage/accounts/external'
import {
  type JWTPayload,
  type JWTVerifyGetKey,
  createRemoteJWKSet,
  customFetch,
  errors,
  jwtVerify,
} from 'jose'
import { z } from 'zod'
import { parseJson } from '@sandlot/shared/base/json'
import type { Logger } from '../log.ts'
import { type Claims, readClaims } from './claims.ts'

/** After a failed discovery. */
const RETRY = { firstMs: 2_000, longestMs: 5 * 60_000 }
/** A document is read again after so long: endpoints move. */
const STALE_MS = 60 * 60_000
/** OpenID Connect Core, section 2. */
const MAX_SUBJECT_CHARS = 255
/** The most that the clocks of the provider and of this machine may differ. */
const CLOCK_SECONDS = 60
/** An ID token comes straight from the token endpoint. */
const MAX_TOKEN_SECONDS = 10 * 60
/** Keys are asked for again after this time where a token has an unknown one. */
const KEYS_AGAIN_MS = 1_000
/** Longer ones do not fit into an address. */
const MAX_HINT_CHARS = 4_000
const ASYMMETRIC = /^(RS|PS|ES)\d{3}$|^(EdDSA|Ed25519)$/

const tokenAnswer = z.object({ id_token: z.string(), access_token: z.string().optional() })
const tokenProblem = z.object({ error: z.string(), error_description: z.string().optional() })

type State =
  | { is: 'ready'; found: OidcDiscovery; keys: JWTVerifyGetKey; readAt: number }
  | { is: 'away'; problem: string; failures: number }

interface ProviderOptions {
  config: OidcProviderConfig
  /** Origin of Sandlot, as people type it. */
  publicUrl: string
  log: Logger
  retry?: { firstMs: number; longestMs: number }
}

export class OidcProvider implements ExternalProvider {
  readonly config: OidcProviderConfig
  /** Fixed for the issuer, so that a change of id or name loses no account. */
  readonly key: string
  readonly redirectUri: string
  readonly #publicUrl: string
  readonly #log: Logger
  readonly #fetch: Fetch
  readonly #retry: { firstMs: number; longestMs: number }
  readonly #closing = new AbortController()
  #state: State = { is: 'away', problem: 'its discovery has not been read yet', failures: 0 }
  #reading: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor({ config, publicUrl, log, retry = RETRY }: ProviderOptions) {
    this.config = config
    this.key = `oidc-${createHash('sha256').update(config.issuer).digest('hex').slice(0, 16)}`
    this.redirectUri = `${publicUrl}/api/sign-in/callback/${config.id}`
    this.#publicUrl = publicUrl
    this.#log = log.child({ provider: config.id })
    this.#fetch = providerFetch(config.issuer)
    this.#retry = retry
    void this.#discover()
  }

  get name(): string {
    return this.config.name
  }

  get clientId(): string {
    return this.config.clientId
  }

  get scopes(): string[] {
    return this.config.scopes
  }

  get signUp(): boolean {
    return this.config.signUp
  }

  /** Undefined: the provider is available for sign-in. */
  get problem(): string | undefined {
    return this.#state.is === 'ready' ? undefined : this.#state.problem
  }

  close(): void {
    this.#closing.abort()
    clearTimeout(this.#timer)
  }

  async endpoints(): Promise<{ authorization: string; issuer: string }> {
    const { found } = await this.#ready()
    return { authorization: found.authorization_endpoint, issuer: found.issuer }
  }

  /** Throws `unauthenticated` (the provider refuses) or `not_ready` (it does not answer). */
  async exchange(code: string, codeVerifier: string): Promise<ExternalTokens> {
    const { found } = await this.#ready()
    const { clientId, clientSecret } = this.config
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: this.redirectUri,
      code_verifier: codeVerifier,
      client_id: clientId,
    })
    const headers = new Headers({
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
    })
    // RFC 6749 makes basic the one that every server has; a list without it means another.
    const methods = found.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    if (clientSecret !== undefined) {
      if (methods.includes('client_secret_basic'))
        headers.set('authorization', `Basic ${basic(clientId, clientSecret)}`)
      else body.set('client_secret', clientSecret)
    }
    const { status, json } = await this.#ask(found.token_endpoint, {
      method: 'POST',
      headers,
      body: body.toString(),
    })
    const tokens = tokenAnswer.safeParse(json)
    if (status === 200 && tokens.success)
      return { idToken: tokens.data.id_token, accessToken: tokens.data.access_token }
    const refused = tokenProblem.safeParse(json)
    const detail = refused.success
      ? `${refused.data.error}${refused.data.error_description === undefined ? '' : `: ${refused.data.error_description}`}`
      : status === 200
        ? 'its answer has no ID token; the scope openid may be missing'
        : `status ${status}`
    throw this.#refused(`did not exchange the code (${detail.slice(0, 300)})`)
  }

  /** Throws `unauthenticated` with what does not hold. */
  async verify(idToken: string, nonce: string): Promise<Claims> {
    const { found, keys } = await this.#ready()
    const algorithms = (found.id_token_signing_alg_values_supported ?? ['RS256']).filter((alg) =>
      ASYMMETRIC.test(alg),
    )
    let payload: JWTPayload
    try {
      ;({ payload } = await jwtVerify(idToken, keys, {
        issuer: this.config.issuer,
        audience: this.config.clientId,
        algorithms,
        requiredClaims: ['iss', 'sub', 'aud', 'exp', 'iat'],
        clockTolerance: CLOCK_SECONDS,
        maxTokenAge: MAX_TOKEN_SECONDS,
      }))
    } catch (error) {
      throw this.#refused(`sent an ID token that cannot be accepted: ${this.#tokenProblem(error)}`)
    }
    // Cleaned for the database, it could be another person’s.
    const { sub } = payload
    const isUsable = typeof sub === 'string' && sub !== '' && sub.length <= MAX_SUBJECT_CHARS
    if (!isUsable || storableText(sub) !== sub)
      throw this.#refused('sent an ID token whose subject (sub) cannot be used')
    if (payload['nonce'] !== nonce)
      throw this.#refused('sent an ID token of another sign-in (its nonce differs). Try again')
    const several = Array.isArray(payload.aud) && payload.aud.length > 1
    if (several && payload['azp'] !== this.config.clientId)
      throw this.#refused('sent an ID token for another program (azp)')
    return payload
  }

  async identify(idClaims: Claims, accessToken: string | undefined): Promise<ExternalIdentity> {
    const info = await this.#userInfo(idClaims, accessToken)
    const { identity, notes } = readClaims({ ...info.claims, ...idClaims }, this.config, info.problem)
    if (notes.length > 0) this.#log.warn({ subject: identity.subject, notes }, 'claims are not as expected')
    return identity
  }

  /** The address that ends the sign-in at the provider too; undefined: it has none. */
  endSessionUrl(idToken: string | undefined): string | undefined {
    if (this.#state.is !== 'ready') return undefined
    const { end_session_endpoint: address } = this.#state.found
    if (address === undefined) return undefined
    const url = new URL(address)
    if (idToken !== undefined && idToken.length <= MAX_HINT_CHARS)
      url.searchParams.set('id_token_hint', idToken)
    url.searchParams.set('client_id', this.config.clientId)
    url.searchParams.set('post_logout_redirect_uri', `${this.#publicUrl}/sign-in`)
    return url.href
  }

  /**
   * Claims that only the user info endpoint has. If it fails, the ID token alone counts: missing
   * claims are then absent ones.
   */
  async #userInfo(
    idClaims: Claims,
    accessToken: string | undefined,
  ): Promise<{ claims: Claims; problem?: string }> {
    const { found } = await this.#ready()
    if (found.userinfo_endpoint === undefined || accessToken === undefined) return { claims: {} }
    const asked = this.#ask(found.userinfo_endpoint, {
      headers: { accept: 'application/json', authorization: `Bearer ${accessToken}` },
    })
    const answer = await asked.catch((error: unknown) => messageOf(error))
    if (typeof answer === 'string') return { claims: {}, problem: `its user info cannot be read: ${answer}` }
    const { status, json } = answer
    if (status !== 200) return { claims: {}, problem: `its user info answers with status ${status}` }
    const claims = z.record(z.string(), z.unknown()).safeParse(json)
    if (!claims.success)
      return { claims: {}, problem: 'its user info is not JSON (a signed one is not read)' }
    if (claims.data['sub'] !== idClaims['sub']) throw this.#refused('sent the claims of another person')
    return { claims: claims.data }
  }

  async #ask(url: string, init: RequestInit): Promise<{ status: number; json: unknown }> {
    try {
      const response = await this.#fetch(url, { ...init, signal: this.#closing.signal })
      return { status: response.status, json: parseJson(await response.text()) }
    } catch (error) {
      throw new SandlotError('not_ready', `${this.name} does not answer (${fetchProblem(error)}).`, {
        cause: error,
      })
    }
  }

  /** Reads the discovery where it is missing or stale. Throws `not_ready`. */
  async #ready(): Promise<Extract<State, { is: 'ready' }>> {
    if (this.#state.is === 'away') await this.#discover()
    else if (Date.now() - this.#state.readAt > STALE_MS) void this.#discover()
    if (this.#state.is === 'ready') return this.#state
    throw new SandlotError('not_ready', `${this.name} cannot be used now: ${this.#state.problem}`)
  }

  /** One at a time. Never rejects. */
  #discover(): Promise<void> {
    return (this.#reading ??= this.#read().finally(() => (this.#reading = undefined)))
  }

  async #read(): Promise<void> {
    clearTimeout(this.#timer)
    try {
      const found = await readDiscovery(this.config.issuer, this.#closing.signal)
      const before = this.#state
      const sameKeys = before.is === 'ready' && before.found.jwks_uri === found.jwks_uri
      const keys = sameKeys ? before.keys : this.#keysAt(found.jwks_uri)
      this.#state = { is: 'ready', found, keys, readAt: Date.now() }
      if (before.is === 'away')
        this.#log.info({ issuer: found.issuer }, 'the provider is available for sign-in')
    } catch (error) {
      if (this.#closing.signal.aborted) return
      if (this.#state.is === 'ready') {
        // The previous keys still hold; the next hour tries again.
        this.#state = { ...this.#state, readAt: Date.now() }
        this.#log.warn(
          { problem: messageOf(error) },
          'the discovery document of the provider could not be reloaded; retrying in an hour',
        )
        return
      }
      const failures = this.#state.failures + 1
      this.#state = { is: 'away', problem: messageOf(error), failures }
      this.#log.warn(
        { problem: messageOf(error), failures },
        'the discovery document of the provider cannot be read; retrying',
      )
      this.#timer = setTimeout(() => void this.#discover(), backoffMs(failures, this.#retry)).unref()
    }
  }

  #keysAt(uri: string): JWTVerifyGetKey {
    return createRemoteJWKSet(new URL(uri), {
      [customFetch]: (url: string, init: RequestInit) => this.#fetch(url, init),
      cooldownDuration: KEYS_AGAIN_MS,
    })
  }

  #tokenProblem(error: unknown): string {
    const { config } = this
    if (
      error instanceof errors.JWTExpired ||
      (error instanceof errors.JWTClaimValidationFailed && error.claim === 'iat')
    )
      return `it is not of now. The clock of this machine or that of ${config.name} is wrong`
    if (error instanceof errors.JWTClaimValidationFailed) {
      const value = JSON.stringify(error.payload[error.claim])?.slice(0, 200) ?? 'absent'
      if (error.claim === 'aud') return `it is for ${value}, not for the client ${config.clientId}`
      if (error.claim === 'iss') return `it is of the issuer ${value}, not of ${config.issuer}`
      return `its claim ${error.claim} is ${value}`
    }
    if (error instanceof errors.JOSEError) return error.message
    return `its keys cannot be read (${fetchProblem(error)})`
  }

  #refused(problem: string): SandlotError {
    this.#log.warn({ problem }, 'a sign-in by the provider was refused')
    return new SandlotError('unauthenticated', `${this.name} ${problem}.`)
  }
}

/** RFC 6749, 2.3.1: both are form-encoded first. */
function basic(id: string, secret: string): string {
  const encode = (part: string): string => new URLSearchParams([['', part]]).toString().slice(1)
  return Buffer.from(`${encode(id)}:${encode(secret)}`).toString('base64')
}
