/**
 * Sign-in by providers through better-auth's `genericOAuth`. better-auth stores the state of a
 * flow, PKCE and the nonce, and writes accounts and sign-ins; `ExternalProvider` sends requests to
 * the provider and checks ID tokens; `external.ts` decides who may sign in.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { AuthContext } from 'better-auth'
import { getOAuthState } from 'better-auth/api'
import { genericOAuth } from 'better-auth/plugins/generic-oauth'
import type { Kysely } from 'kysely'
import type { BetterAuth } from './auth-options.ts'
import {
  type ExternalFlows,
  type ExternalIdentity,
  type ExternalProvider,
  ExternalRefusal,
  checkLink,
  matchIdentity,
  ownerOf,
} from './external.ts'
import type { AccountsSchema } from '../tables/accounts.ts'
import type { Origin, SignedIn } from '../tables/account-records.ts'

interface FlowsOptions {
  db: Kysely<AccountsSchema>
  auth: BetterAuth
  headersOf: (from: Origin) => Headers
  /** The sign-in that a response with these headers has created. */
  begun: (headers: Headers) => Promise<SignedIn>
}

/** Results collected while better-auth finishes one flow. */
interface Attempt {
  /** The provider of this sign-in: an invitation admits more people than the configuration. */
  provider: ExternalProvider
  /** The sign-in of the returning browser. */
  signInId: string | undefined
  nonce?: string
  accessToken?: string | undefined
  claims?: Readonly<Record<string, unknown>>
  identity?: ExternalIdentity
  linking: boolean
  linked: boolean
  created: boolean
  returnTo?: string
  excluded?: string
  problem?: unknown
}

const NOT_BEGUN_HERE = 'This sign-in was not begun here, or took too long. Try again.'
const SIGN_IN_ENDED = 'Your sign-in here has ended meanwhile. Sign in, and link it again.'

/** In the state of a flow: the provider's key, and for a link the sign-in. */
const BEGUN_AT = 'sandlotProvider'
const BEGUN_BY = 'sandlotSignIn'

/** better-auth's redirect after a failure; we replace it. */
const ERROR_PATH = '/sign-in'

export function makeExternalFlows({ db, auth, headersOf, begun }: FlowsOptions): ExternalFlows {
  const { api, $context } = auth
  const attempts = new AsyncLocalStorage<Attempt>()
  /** better-auth's current configuration, by provider key. */
  const registered = new Map<string, string>()

  /** better-auth swallows some exceptions of hooks. */
  const noting = async <T>(step: (attempt: Attempt) => Promise<T>): Promise<T> => {
    const attempt = attempts.getStore()
    if (attempt === undefined) throw new Error('accounts: a provider answered outside of a sign-in')
    try {
      return await step(attempt)
    } catch (error) {
      attempt.problem ??= error
      throw error
    }
  }

  /** Before the code is exchanged. Throws if the flow was begun at another provider or sign-in. */
  const checkState = async (provider: ExternalProvider, attempt: Attempt): Promise<void> => {
    const state = await getOAuthState()
    attempt.returnTo = state?.callbackURL
    attempt.linking = state?.link !== undefined
    if (state?.[BEGUN_AT] !== provider.key) throw new SandlotError('unauthenticated', NOT_BEGUN_HERE)
    if (attempt.linking && (attempt.signInId === undefined || state[BEGUN_BY] !== attempt.signInId))
      throw new SandlotError('unauthenticated', SIGN_IN_ENDED)
  }

  const signInOf = async (cookie: string): Promise<string | undefined> => {
    const headers = new Headers({ cookie })
    return (await api.getSession({ headers, query: { disableRefresh: true } }))?.session.id
  }

  const decide = async (
    provider: ExternalProvider,
    attempt: Attempt,
  ): Promise<ExternalIdentity & { email: string }> => {
    const identity = await provider.identify(attempt.claims ?? {}, attempt.accessToken)
    attempt.identity = identity
    const state = await getOAuthState()
    if (state?.link !== undefined) {
      if (identity.refused !== undefined) throw new SandlotError('forbidden', identity.refused)
      await checkLink(db, provider, identity, state.link.userId)
      return { ...identity, email: identity.email ?? state.link.email }
    }
    if (identity.refused !== undefined) {
      const owner = await ownerOf(db, provider.key, identity.subject)
      if (owner !== undefined && identity.unproven !== true) {
        await (await $context).internalAdapter.deleteUserSessions(owner.id)
        attempt.excluded = owner.id
      }
      throw new SandlotError('forbidden', identity.refused)
    }
    const match = await matchIdentity(db, provider, identity)
    attempt.created = match === undefined
    attempt.linked = match?.linked === false
    return { ...identity, email: match?.email ?? identity.email ?? '' }
  }

  /** Registers the provider with better-auth by its current discovery. Throws `not_ready`. */
  const register = async (provider: ExternalProvider): Promise<void> => {
    const { authorization, issuer } = await provider.endpoints()
    const now = JSON.stringify([authorization, issuer])
    if (registered.get(provider.key) === now) return
    const context = await $context
    const made = await genericOAuth({
      config: [
        {
          providerId: provider.key,
          name: provider.name,
          clientId: provider.clientId,
          authorizationUrl: authorization,
          redirectURI: provider.redirectUri,
          scopes: provider.scopes,
          pkce: true,
          getToken: ({ code, codeVerifier = '' }) =>
            noting(async (attempt) => {
              await checkState(provider, attempt)
              const { idToken, accessToken } = await provider.exchange(code, codeVerifier)
              // Not stored with the account: it is only used for this sign-in.
              attempt.accessToken = accessToken
              return { idToken }
            }),
          getUserInfo: () =>
            noting(async (attempt) => {
              const { subject, name, email } = await decide(attempt.provider, attempt)
              // `decide` has requested the relevant claims.
              return { id: subject, sub: subject, name, email, emailVerified: true }
            }),
          accountSubject: ({ profile }) => String(profile.sub),
        },
      ],
    }).init(context as AuthContext)
    const [social] = made.context.socialProviders
    if (social === undefined) throw new Error(`accounts: better-auth made no provider ${provider.key}`)
    social.issuer = issuer
    social.requiresIdTokenNonce = true
    social.idToken = {
      verify: (idToken, nonce) =>
        noting(async (attempt) => {
          if (nonce === undefined) throw new Error('accounts: a flow without a nonce')
          attempt.claims = await provider.verify(idToken, nonce)
          return true
        }),
    }
    const at = context.socialProviders.findIndex(({ id }) => id === provider.key)
    if (at === -1) context.socialProviders.push(social)
    else context.socialProviders[at] = social
    registered.set(provider.key, now)
  }

  return {
    async begin(provider, returnTo) {
      await register(provider)
      const { headers, response } = await api.signInSocial({
        body: flowOf(provider, returnTo),
        returnHeaders: true,
      })
      return { url: response.url ?? '', setCookies: headers.getSetCookie() }
    },
    async beginLink(provider, returnTo, cookie) {
      await register(provider)
      const { headers, response } = await api.linkSocialAccount({
        body: flowOf(provider, returnTo, await signInOf(cookie)),
        headers: new Headers({ cookie }),
        returnHeaders: true,
      })
      return { url: response.url, setCookies: headers.getSetCookie() }
    },
    async finish(provider, query, cookie, from) {
      const signInId = await signInOf(cookie)
      const attempt: Attempt = { provider, signInId, linking: false, linked: false, created: false }
      const refuse = (error: unknown): never => {
        if (!(error instanceof SandlotError)) throw error
        throw new ExternalRefusal(error, attempt)
      }
      await register(provider).catch(refuse)
      const headers = headersOf(from)
      headers.set('cookie', cookie)
      // Some exceptions of hooks arrive here, and some become a redirect.
      const response = await attempts
        .run(attempt, () =>
          api.callbackOAuth({ params: { id: provider.key }, query, headers, asResponse: true }),
        )
        .catch((error: unknown) => refuse(attempt.problem ?? error))
      if (attempt.problem !== undefined) return refuse(attempt.problem)
      const location = new URL(response.headers.get('location') ?? '', 'http://sandlot')
      const error = location.searchParams.get('error')
      const { identity, returnTo = '/' } = attempt
      if (error !== null || identity === undefined)
        return refuse(new SandlotError('unauthenticated', problemOf(error ?? '', provider.name, query)))
      const signedIn = attempt.linking ? undefined : await begun(response.headers)
      return {
        signedIn,
        identity,
        linked: attempt.linked || attempt.linking,
        created: attempt.created,
        returnTo,
      }
    },
  }
}

function flowOf({ key }: ExternalProvider, returnTo: string, signInId?: string) {
  return {
    provider: key,
    callbackURL: returnTo,
    errorCallbackURL: ERROR_PATH,
    disableRedirect: true,
    additionalData: { [BEGUN_AT]: key, [BEGUN_BY]: signInId },
  }
}

/** A refusal of better-auth, by its code. */
function problemOf(error: string, provider: string, query: Readonly<Record<string, string>>): string {
  const said = query['error'] === undefined ? undefined : (query['error_description'] ?? query['error'])
  if (said !== undefined) return `${provider} refused: ${said.slice(0, 300)}`
  switch (error) {
    case 'state_mismatch':
    case 'state_not_found':
      return NOT_BEGUN_HERE
    case 'issuer_mismatch':
      return `The answer is not of ${provider}: its issuer is ${query['iss']?.slice(0, 300) ?? 'absent'}.`
    case 'unable_to_link_account':
      return SIGN_IN_ENDED
    default:
      return `${provider} could not be used to sign in (${error}).`
  }
}
