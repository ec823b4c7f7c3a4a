/**
 * Sign-in by a provider: the interface of a provider, the identities that may sign in, and the role
 * from groups.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type Role, role } from '@sandlot/shared/account/role'
import type { Kysely, Transaction } from 'kysely'
import { isUnproven } from './account-rows.ts'
import { PASSWORD } from './credentials.ts'
import type { AccountsSchema } from '../tables/accounts.ts'
import type { Origin, SignedIn } from '../tables/account-records.ts'

/** From a verified ID token. */
export interface ExternalIdentity {
  /** Stable, and unique at the provider. */
  subject: string
  name: string
  email: string | undefined
  /** Verified by the provider, or the provider is trusted to do so. */
  emailVerified: boolean
  /** From groups; null: no group gives a role. Absent: groups give no roles, or are not known. */
  role?: Role | null
  /** Names of teams from groups. Absent: groups give no teams, or are not known. */
  teams?: string[]
  /** The reason that the provider's rules refuse the person. */
  refused?: string
  /** Required claims are missing: refused now, without ending sign-ins or removing roles. */
  unproven?: true
}

export interface ExternalTokens {
  idToken: string
  accessToken: string | undefined
}

/** One provider. Every method throws `SandlotError` with a text that is safe to show. */
export interface ExternalProvider {
  /** Fixed for its issuer; with a subject the key of an identity. */
  readonly key: string
  readonly name: string
  readonly clientId: string
  readonly redirectUri: string
  readonly scopes: string[]
  /** Creates accounts for new people. */
  readonly signUp: boolean
  endpoints(): Promise<{ authorization: string; issuer: string }>
  exchange(code: string, codeVerifier: string): Promise<ExternalTokens>
  verify(idToken: string, nonce: string): Promise<Readonly<Record<string, unknown>>>
  identify(
    claims: Readonly<Record<string, unknown>>,
    accessToken: string | undefined,
  ): Promise<ExternalIdentity>
}

/** The result of a sign-in by a provider. */
interface ExternalOutcome {
  /** Undefined if the provider was linked to an account that is signed in already. */
  signedIn: SignedIn | undefined
  identity: ExternalIdentity
  /** The account was linked just now: by its address, or on request. */
  linked: boolean
  created: boolean
}

/** The browser is redirected to `url` with these cookies. */
export interface ExternalBegin {
  url: string
  setCookies: string[]
}

/** A refused sign-in. */
export class ExternalRefusal extends Error {
  override readonly name = 'ExternalRefusal'
  readonly reason: SandlotError
  readonly returnTo: string | undefined
  /** True for the attempt to link an account. */
  readonly linking: boolean
  /** A former user of this identity who may not sign in any more: their sign-ins have ended. */
  readonly excluded: string | undefined

  constructor(
    reason: SandlotError,
    flow: { returnTo?: string | undefined; linking: boolean; excluded?: string | undefined },
  ) {
    super(reason.message, { cause: reason })
    this.reason = reason
    this.returnTo = flow.returnTo
    this.linking = flow.linking
    this.excluded = flow.excluded
  }
}

export interface ExternalFlows {
  /** Throws `not_ready` if the provider is unusable. `returnTo`: a path of ours. */
  begin(provider: ExternalProvider, returnTo: string): Promise<ExternalBegin>
  /** Like `begin`; links the account that this `Cookie` header signs in. */
  beginLink(provider: ExternalProvider, returnTo: string, cookie: string): Promise<ExternalBegin>
  /** The browser has returned with this query. Throws `ExternalRefusal`. */
  finish(
    provider: ExternalProvider,
    query: Readonly<Record<string, string>>,
    cookie: string,
    from: Origin,
  ): Promise<ExternalOutcome & { returnTo: string }>
}

export interface ExternalSignIns extends ExternalFlows {
  /** Oldest first. */
  links(userId: string): Promise<{ key: string; linkedAt: number }[]>
  /** False: not linked. Throws `conflict` for the only way to sign in. */
  unlink(userId: string, key: string): Promise<boolean>
  hasPassword(userId: string): Promise<boolean>
  /** Sets the role from groups. */
  setGroupRole(userId: string, given: Role | null): Promise<GroupRoleChange>
  /** The provider of a sign-in, and its latest ID token. */
  originOf(signInId: string): Promise<{ key: string; idToken: string | undefined } | undefined>
}

/** `kept`: a role that groups cannot remove. */
interface GroupRoleChange {
  before: Role
  after: Role
  kept?: 'last_administrator'
}

/** `flows` are better-auth's. */
export function makeExternal(db: Kysely<AccountsSchema>, flows: ExternalFlows): ExternalSignIns {
  return {
    ...flows,
    async finish(provider, query, cookie, from) {
      const outcome = await flows.finish(provider, query, cookie, from)
      const { signedIn } = outcome
      if (signedIn !== undefined) await recordSignIn(db, signedIn.signInId, provider.key)
      return outcome
    },
    links: (userId) => listLinks(db, userId),
    unlink: (userId, key) => unlink(db, userId, key),
    hasPassword: (userId) => hasLink(db, userId, PASSWORD),
    setGroupRole: (userId, given) => setGroupRole(db, userId, given),
    originOf: (signInId) => originOf(db, signInId),
  }
}

/** The user who signed in with this identity before. */
export async function ownerOf(
  db: Kysely<AccountsSchema>,
  key: string,
  subject: string,
): Promise<{ id: string; email: string } | undefined> {
  return db
    .selectFrom('auth_account')
    .innerJoin('auth_user', 'auth_user.id', 'auth_account.userId')
    .select(['auth_user.id', 'auth_user.email'])
    .where('providerId', '=', key)
    .where('accountId', '=', subject)
    .executeTakeFirst()
}

/** The user of an identity; undefined: a new one. Throws the reason of a refusal. */
export async function matchIdentity(
  db: Kysely<AccountsSchema>,
  { key, name: provider, signUp }: Pick<ExternalProvider, 'key' | 'name' | 'signUp'>,
  identity: ExternalIdentity,
): Promise<{ email: string; linked: boolean } | undefined> {
  const known = await ownerOf(db, key, identity.subject)
  if (known !== undefined) return { email: known.email, linked: true }
  const { email } = identity
  if (email === undefined)
    throw new SandlotError(
      'forbidden',
      `${provider} sent no e-mail address that an account can have, which a first sign-in needs. Its client needs the scope email.`,
    )
  const user = await db
    .selectFrom('auth_user')
    .select(['id', 'email', 'role'])
    .where('email', '=', email)
    .executeTakeFirst()
  if (!identity.emailVerified)
    throw new SandlotError(
      'forbidden',
      `${provider} does not say that the address ${email} is verified (email_verified), so it cannot be matched to an account. An operator who trusts its addresses can set "trusted".`,
    )
  if (user === undefined) {
    if (signUp) return undefined
    throw new SandlotError(
      'forbidden',
      `There is no account with the address ${email}, and a sign-in by ${provider} does not make one. Ask an administrator.`,
    )
  }
  if (user.role === 'admin')
    throw new SandlotError(
      'forbidden',
      `${email} is an administrator here, and is not linked to ${provider}. Sign in with the password, then link ${provider} under Settings → Sign-in & security.`,
    )
  // Otherwise the first person to enter this address would get its owner's account.
  if (await isUnproven(db, user.id))
    throw new SandlotError(
      'forbidden',
      `An account with the address ${email} was made by an invitation for any address. If it is yours, sign in with its password, then link ${provider} under Settings → Sign-in & security. Otherwise ask an administrator.`,
    )
  if (await hasLink(db, user.id, key))
    throw new SandlotError(
      'forbidden',
      `The account of ${email} belongs to another person of ${provider}. An administrator can remove it, or its link.`,
    )
  return { email: user.email, linked: false }
}

/** Throws `conflict` if an identity cannot be linked to this account. */
export async function checkLink(
  db: Kysely<AccountsSchema>,
  { key, name: provider }: Pick<ExternalProvider, 'key' | 'name'>,
  identity: ExternalIdentity,
  userId: string,
): Promise<void> {
  const owner = await ownerOf(db, key, identity.subject)
  if (owner === undefined && (await hasLink(db, userId, key)))
    throw new SandlotError(
      'conflict',
      `Your account is linked to another person of ${provider}. Unlink it first.`,
    )
  if (owner !== undefined && owner.id !== userId)
    throw new SandlotError('conflict', `Your identity at ${provider} belongs to another account here.`)
}

async function hasLink(db: Kysely<AccountsSchema>, userId: string, key: string): Promise<boolean> {
  const found = await db
    .selectFrom('auth_account')
    .select('id')
    .where('userId', '=', userId)
    .where('providerId', '=', key)
    .executeTakeFirst()
  return found !== undefined
}

async function listLinks(
  db: Kysely<AccountsSchema>,
  userId: string,
): Promise<{ key: string; linkedAt: number }[]> {
  const rows = await db
    .selectFrom('auth_account')
    .select(['providerId', 'createdAt'])
    .where('userId', '=', userId)
    .where('providerId', '!=', PASSWORD)
    .orderBy('createdAt')
    .execute()
  return rows.map(({ providerId, createdAt }) => ({ key: providerId, linkedAt: Date.parse(createdAt) }))
}

async function unlink(db: Kysely<AccountsSchema>, userId: string, key: string): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const ways = await trx
      .selectFrom('auth_account')
      .select('providerId')
      .where('userId', '=', userId)
      .execute()
    if (key === PASSWORD || !ways.some(({ providerId }) => providerId === key)) return false
    if (ways.length < 2)
      throw new SandlotError(
        'conflict',
        'This is your only way to sign in. Ask an administrator for a password first.',
      )
    await trx.deleteFrom('auth_account').where('userId', '=', userId).where('providerId', '=', key).execute()
    return true
  })
}

/**
 * Groups replace the person's own role, which returns when they no longer do. An administrator
 * appointed by an administrator stays one, and so does the last one.
 */
async function setGroupRole(
  db: Kysely<AccountsSchema>,
  userId: string,
  given: Role | null,
): Promise<GroupRoleChange> {
  return db.transaction().execute(async (trx) => {
    const user = await trx.selectFrom('auth_user').select('role').where('id', '=', userId).executeTakeFirst()
    if (user === undefined) throw new SandlotError('not_found', 'There is no such person.')
    const before = role.parse(user.role ?? 'member')
    const row = await trx.selectFrom('group_role').selectAll().where('userId', '=', userId).executeTakeFirst()
    // A role other than the one from groups was set by an administrator since.
    const own = row !== undefined && row.given === before ? row.own : before
    const after = own === 'admin' ? 'admin' : (given ?? own)
    if (before === 'admin' && after !== 'admin' && (await isLastAdministrator(trx)))
      return { before, after: before, kept: 'last_administrator' }
    await trx.deleteFrom('group_role').where('userId', '=', userId).execute()
    if (given !== null && own !== 'admin')
      await trx.insertInto('group_role').values({ userId, own, given }).execute()
    if (after !== before)
      await trx.updateTable('auth_user').set({ role: after }).where('id', '=', userId).execute()
    return { before, after }
  })
}

async function isLastAdministrator(trx: Transaction<AccountsSchema>): Promise<boolean> {
  const admins = await trx.selectFrom('auth_user').select('id').where('role', '=', 'admin').limit(2).execute()
  return admins.length < 2
}

async function originOf(
  db: Kysely<AccountsSchema>,
  signInId: string,
): Promise<{ key: string; idToken: string | undefined } | undefined> {
  const row = await db
    .selectFrom('sign_in')
    .innerJoin('auth_session', 'auth_session.id', 'sign_in.id')
    .leftJoin('auth_account', (join) =>
      join
        .onRef('auth_account.userId', '=', 'auth_session.userId')
        .onRef('auth_account.providerId', '=', 'sign_in.provider'),
    )
    .select(['sign_in.provider', 'auth_account.idToken'])
    .where('sign_in.id', '=', signInId)
    .executeTakeFirst()
  if (row === undefined || row.provider === null) return undefined
  return { key: row.provider, idToken: row.idToken ?? undefined }
}

async function recordSignIn(db: Kysely<AccountsSchema>, id: string, provider: string): Promise<void> {
  await db
    .insertInto('sign_in')
    .values({ id, provider, lastUsedAt: Date.now() })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ provider }))
    .execute()
}
