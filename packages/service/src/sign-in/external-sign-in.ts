/** Sign-in by providers: begins it, finishes it, and gives people what their groups give them. */
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { NOT_SIGNED_IN } from '@sandlot/shared/admin/audit'
import { randomText } from '@sandlot/shared/base/ids'
import type { BackgroundAudit } from '@sandlot/storage/audit/background-audit'
import { ExternalRefusal } from '@sandlot/storage/accounts/external'
import type { ExternalBegin, ExternalIdentity, ExternalProvider } from '@sandlot/storage/accounts/external'
import type { TakenInvitation } from '@sandlot/storage/accounts/invitations'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import type { Origin } from '@sandlot/storage/tables/account-records'
import { signedInFrom } from '../auth/agent-user.ts'
import type { Logger } from '../log.ts'
import type { Sockets } from '../socket/sockets.ts'
import type { OidcProvider } from './oidc-provider.ts'

/** The actor of changes that come from a sign-in's groups. */
const GROUPS = { id: 'groups', name: 'Groups of the sign-in' }
const PROBLEM_MS = 10 * 60_000
const MAX_PROBLEMS = 1_000

interface ExternalSignInOptions {
  accounts: AccountsStore
  audit: BackgroundAudit
  providers: readonly OidcProvider[]
  sockets: Pick<Sockets, 'signInsEnded'>
  /** Their role or teams have changed. Never rejects. */
  personChanged: (userId: string) => Promise<void>
  log: Logger
}

/** The browser's next address, with these cookies. */
interface Finished {
  to: string
  setCookies: string[]
}

export class ExternalSignIn {
  readonly providers: readonly OidcProvider[]
  readonly #accounts: AccountsStore
  readonly #audit: BackgroundAudit
  readonly #sockets: ExternalSignInOptions['sockets']
  readonly #personChanged: ExternalSignInOptions['personChanged']
  readonly #log: Logger
  /** Why sign-ins failed, by the id in the address that the browser was sent to. */
  readonly #problems = new Map<string, { message: string; until: number }>()

  constructor({ accounts, audit, providers, sockets, personChanged, log }: ExternalSignInOptions) {
    this.#accounts = accounts
    this.#audit = audit
    this.providers = providers
    this.#sockets = sockets
    this.#personChanged = personChanged
    this.#log = log
  }

  close(): void {
    for (const provider of this.providers) provider.close()
  }

  /** Throws `bad_request` (where to go afterwards), `not_found`, `not_ready`. */
  begin(id: string, returnTo: string | undefined): Promise<ExternalBegin> {
    return this.#accounts.external.begin(this.#find(id), ownPath(returnTo))
  }

  /** `begin`, for the account that this `Cookie` header signs in. */
  beginLink(id: string, returnTo: string | undefined, cookie: string): Promise<ExternalBegin> {
    return this.#accounts.external.beginLink(this.#find(id), ownPath(returnTo), cookie)
  }

  /** The browser came back with `query`. `invitation`: the token that it began with. */
  async finish(
    id: string,
    query: Readonly<Record<string, string>>,
    cookie: string,
    from: Origin,
    invitation?: string,
  ): Promise<Finished> {
    const provider = this.#find(id)
    let taken: TakenInvitation | undefined
    try {
      if (invitation !== undefined) taken = await this.#accounts.invitations.take(invitation)
      const by = taken === undefined ? provider : invited(provider, taken.email)
      const outcome = await this.#accounts.external.finish(by, query, cookie, from)
      const { signedIn, identity, linked, created, returnTo } = outcome
      if (created && signedIn !== undefined) await taken?.give(signedIn.account)
      else await taken?.release()
      taken = undefined
      if (signedIn === undefined) {
        this.#log.info({ provider: id, subject: identity.subject }, 'an account was linked')
        await this.#accounts.audit.write({
          who: { id: identity.subject, name: identity.email ?? identity.subject },
          from: { address: from.ip },
          what: 'provider_linked',
          whom: { id, name: provider.name },
        })
        return { to: returnTo, setCookies: [] }
      }
      const user = signedIn.account.id
      await this.#applyGroups(user, identity)
      this.#log.info({ provider: id, user, linked, created }, 'signed in by a provider')
      await this.#accounts.audit.write({
        ...signedInFrom(signedIn, from.ip ?? ''),
        what: 'signed_in',
        after: { provider: provider.name, linked, created },
      })
      return { to: returnTo, setCookies: signedIn.setCookies }
    } catch (error) {
      await taken?.release()
      this.#audit.count(
        `${from.ip} ${id}`,
        {
          who: NOT_SIGNED_IN,
          from: { address: from.ip },
          what: 'sign_in_failed',
          whom: { name: provider.name },
          after: { why: whyRefused(error) },
        },
        { who: NOT_SIGNED_IN, what: 'sign_in_failed', whom: { name: 'many others' } },
      )
      return { to: await this.#refused(provider, error), setCookies: [] }
    }
  }

  /** Undefined: there is none of this id, or not any more. */
  problem(id: string): string | undefined {
    const found = this.#problems.get(id)
    return found === undefined || found.until < Date.now() ? undefined : found.message
  }

  /** The address that ends this sign-in at its provider too. */
  async endSessionUrl(signInId: string): Promise<string | undefined> {
    const origin = await this.#accounts.external.originOf(signInId)
    if (origin === undefined) return undefined
    return this.providers.find(({ key }) => key === origin.key)?.endSessionUrl(origin.idToken)
  }

  /** A provider that is not configured any more has its key for a name. */
  nameOf(key: string): string {
    return this.providers.find((provider) => provider.key === key)?.name ?? key
  }

  /** Throws `not_found`. */
  keyOf(id: string): string {
    return this.#find(id).key
  }

  #find(id: string): OidcProvider {
    const found = this.providers.find(({ config }) => config.id === id)
    if (found === undefined) throw new SandlotError('not_found', 'There is no such provider.')
    return found
  }

  /** Gives and takes what groups say; what they say nothing about stays. */
  async #applyGroups(user: string, { role, teams }: Pick<ExternalIdentity, 'role' | 'teams'>): Promise<void> {
    let changed = false
    if (role !== undefined) {
      const { before, after, kept } = await this.#accounts.external.setGroupRole(user, role)
      if (kept !== undefined)
        this.#log.warn({ user }, 'groups would revoke the role of the last administrator; the role stays')
      changed = before !== after
      if (changed) {
        this.#log.info({ user, before, after }, 'groups changed a role')
        const line = { what: 'person_changed', whom: { id: user } } as const
        await this.#accounts.audit.write({
          who: GROUPS,
          ...line,
          before: { role: before },
          after: { role: after },
        })
      }
    }
    if (teams !== undefined && (await this.#setTeams(user, teams))) {
      changed = true
      this.#log.info({ user, teams }, 'groups changed teams')
      await this.#accounts.audit.write({
        who: GROUPS,
        what: 'person_changed',
        whom: { id: user },
        after: { teams },
      })
    }
    if (changed) await this.#personChanged(user)
  }

  /** By name; a team that there is not is created. */
  async #setTeams(user: string, names: readonly string[]): Promise<boolean> {
    const { teams } = this.#accounts
    const there = new Map((await teams.list()).map(({ id, name }) => [name.toLowerCase(), id]))
    const ids: string[] = []
    for (const name of names) {
      const known = there.get(name.toLowerCase())
      if (known !== undefined) ids.push(known)
      else {
        const made = await teams.create(name)
        this.#log.info({ team: made.id, name }, 'created a team named by groups')
        ids.push(made.id)
      }
    }
    return teams.setFromGroups(user, ids)
  }

  async #refused({ config, name }: OidcProvider, error: unknown): Promise<string> {
    const refusal = error instanceof ExternalRefusal ? error : undefined
    const known = refusal?.reason ?? (error instanceof SandlotError ? error : undefined)
    const message = known?.message ?? `Something went wrong on our side while you signed in by ${name}.`
    if (known === undefined) this.#log.error({ err: error, provider: config.id }, 'a sign-in failed')
    else this.#log.warn({ provider: config.id, reason: known.message }, 'a sign-in was refused')
    if (refusal?.excluded !== undefined) await this.#exclude(refusal.excluded)
    const id = this.#keepProblem(message)
    if (refusal?.linking !== true) return `/sign-in?problem=${id}`
    const back = refusal.returnTo ?? '/'
    return `${back}${back.includes('?') ? '&' : '?'}problem=${id}`
  }

  /** Removes roles and teams from groups; the sign-ins have ended already. */
  async #exclude(user: string): Promise<void> {
    try {
      await this.#applyGroups(user, { role: null, teams: [] })
    } catch (error) {
      this.#log.error({ user, problem: messageOf(error) }, 'role and teams from groups could not be revoked')
    }
    this.#sockets.signInsEnded(user)
    this.#log.warn({ user }, 'the rules of the provider exclude a user; all sign-ins of the user ended')
  }

  #keepProblem(message: string): string {
    const now = Date.now()
    for (const [id, { until }] of this.#problems) {
      if (until > now && this.#problems.size < MAX_PROBLEMS) break
      this.#problems.delete(id)
    }
    const id = randomText(20)
    this.#problems.set(id, { message, until: now + PROBLEM_MS })
    return id
  }
}

function whyRefused(error: unknown): string {
  if (error instanceof ExternalRefusal) return error.reason.message
  return error instanceof SandlotError ? error.message : 'a failure on our side'
}

/** A path of our own pages. Throws `bad_request`. */
function ownPath(path = '/'): string {
  const base = 'http://sandlot.invalid'
  const url = URL.canParse(path, base) ? new URL(path, base) : undefined
  // Judged as a browser reads it: `/\host` and `/.//host` are other sites.
  const own = url?.origin === base && !/^\/(\/|api\/|oauth\/)/.test(url.pathname)
  if (url === undefined || !own)
    throw new SandlotError(
      'bad_request',
      'returnTo must be a path of a page of this Sandlot, like /settings.',
    )
  return url.pathname + url.search + url.hash
}

/** An invitation makes an account whatever the provider's `signUp` is, of its address alone. */
function invited(provider: OidcProvider, email: string | null): ExternalProvider {
  const { key, name, clientId, redirectUri, scopes } = provider
  return {
    key,
    name,
    clientId,
    redirectUri,
    scopes,
    signUp: true,
    endpoints: () => provider.endpoints(),
    exchange: (code, verifier) => provider.exchange(code, verifier),
    verify: (idToken, nonce) => provider.verify(idToken, nonce),
    async identify(claims, accessToken) {
      const identity = await provider.identify(claims, accessToken)
      if (email === null || identity.email === email) return identity
      throw new SandlotError(
        'forbidden',
        `This invitation is for another e-mail address than the one that ${name} has of you.`,
      )
    },
  }
}
