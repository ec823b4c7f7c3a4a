/** Set-up, sign-in, who am I, one's password, API keys. */
import type { Account, Me } from '@sandlot/shared/account/api'
import { SandlotError } from '@sandlot/shared/base/errors'
import { lowerMode } from '@sandlot/shared/chat/mode'
import { NOT_SIGNED_IN } from '@sandlot/shared/admin/audit'
import type { InvitationOffer } from '@sandlot/shared/account/sign-in-api'
import { SecondFactorNeeded, type Origin, type SignedIn } from '@sandlot/storage/tables/account-records'
import { z } from 'zod'
import { actorOf, agentUserOf, signedInFrom, userOf } from '../../auth/agent-user.ts'
import { notifyPersonChanged } from '../../people/teams.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Body, Handlers } from '../actions.ts'
import { requireSignIn } from '../request.ts'

const DAY_MS = 24 * 60 * 60 * 1000

const emailShape = z.email().max(254)

export function accountsHandlers(parts: Parts) {
  const { accounts, setup } = parts

  return {
    getSetup: (c) => c.json({ needed: setup.token !== undefined }),
    setUp: (c, body) => setUp(parts, c, body),
    signIn: (c, body) => signInWithPassword(parts, c, body),
    signInWithCode: (c, body) => signInWithCode(parts, c, body),
    showInvitation: (c, body) => showInvitation(parts, c, body),
    acceptInvitation: (c, body) => acceptInvitation(parts, c, body),
    signOut: (c) => signOut(parts, c),
    getMe: async (c) => c.json(await me(parts, c.var.caller.account)),
    changePassword: (c, body) => changePassword(parts, c, body),
    changeName: (c, body) => changeName(parts, c, body),
    listKeys: async (c) => c.json({ keys: await accounts.keys.list(c.var.caller.account.id) }),
    createKey: (c, body) => createKey(parts, c, body),
    deleteKey: (c) => deleteKey(parts, c, c.req.param('id')),
  } satisfies Partial<Handlers>
}

async function me({ agent }: Parts, account: Account): Promise<Me> {
  const { id, name, email, role } = account
  const [status, own] = await Promise.all([agent.lastStatus(), agent.settingsOf(agentUserOf(account))])
  // Before the agent was ever reachable its model is unknown; the page shows that the agent is
  // away.
  const { model, models, defaultMode, fullImage } = status ?? {
    model: { name: 'unknown', demo: false },
    models: [],
    defaultMode: 'auto-edit',
    fullImage: undefined,
  }
  const allowed = models?.filter((one) => own?.models.value.includes(one.name) ?? true)
  const modeCeiling = own?.modeCeiling.value
  return {
    id,
    name,
    email,
    role,
    // The model of a chat that has chosen none.
    model: { ...model, ...(allowed?.[0] && { name: allowed[0].name, images: allowed[0].images }) },
    models: allowed,
    defaultMode: lowerMode(defaultMode, modeCeiling),
    modeCeiling,
    fullImage,
  }
}

function signIn(parts: Parts, c: Ctx, email: string, password: string): Promise<SignedIn> {
  return tryIn(parts, c, email, (from) => parts.accounts.signIns.signIn({ email, password }, from))
}

async function tryIn(
  parts: Parts,
  c: Ctx,
  email: string,
  attempt: (from: Origin) => Promise<SignedIn>,
): Promise<SignedIn> {
  const { accounts, limits, log, metrics } = parts
  const { address, requestId } = c.var
  const from = { ip: address, userAgent: c.req.header('user-agent') }
  try {
    const signedIn = await limits.signIn({ address, email }, () => attempt(from))
    await checkLocal(parts, signedIn)
    await accounts.audit.write({ ...signedInFrom(signedIn, address), what: 'signed_in' })
    metrics.signIn('ok')
    return signedIn
  } catch (error) {
    if (!(error instanceof SandlotError)) throw error
    const { code, message } = error
    if (code === 'rate_limited') metrics.signIn('limited')
    if (code === 'unauthenticated') {
      metrics.signIn('refused')
      log.info({ address, requestId }, 'a sign-in was refused')
    }
    const why = code === 'rate_limited' ? 'too many tries' : code === 'unauthenticated' ? 'wrong' : message
    auditRefused(parts, address, email, why)
    throw error
  }
}

/** A password may have been typed in place of the address: only what looks like one is kept. */
function auditRefused({ audit }: Parts, address: string, email: string, why: string): void {
  const name = emailShape.safeParse(email.trim()).data?.toLowerCase() ?? 'no e-mail address'
  const line = { who: NOT_SIGNED_IN, from: { address }, what: 'sign_in_failed' } as const
  const others = { ...line, from: undefined, whom: { name: 'many others' } }
  audit.count(`${address} ${name} ${why}`, { ...line, whom: { name }, after: { why } }, others)
}

/** Throws `forbidden`; that sign-in has ended then. */
async function checkLocal(
  { accounts, config, external }: Parts,
  { account, setCookies }: SignedIn,
): Promise<void> {
  if (config.localSignIn === 'all' || account.role === 'admin') return
  await accounts.signIns.signOut(setCookies.map((cookie) => cookie.slice(0, cookie.indexOf(';'))).join('; '))
  const names = external.providers.map(({ name }) => name).join(' or ')
  throw new SandlotError(
    'forbidden',
    `Only administrators sign in with a password here. Sign in by ${names || 'the provider that is to be set up'}.`,
  )
}

async function answer(parts: Parts, c: Ctx, signedIn: SignedIn): Promise<Response> {
  for (const cookie of signedIn.setCookies) c.header('set-cookie', cookie, { append: true })
  return c.json(await me(parts, signedIn.account))
}

async function setUp(parts: Parts, c: Ctx, body: Body<'setUp'>): Promise<Response> {
  const { accounts, peers, setup, log } = parts
  const request = await body()
  const administrator = await setup.run(request)
  peers.notifySetUp()
  log.info({ user: administrator.id }, 'the first administrator was created')
  const from = { address: c.var.address }
  const after = { role: administrator.role }
  await accounts.audit.write({
    who: NOT_SIGNED_IN,
    from,
    what: 'person_added',
    whom: userOf(administrator),
    after,
  })
  return answer(parts, c, await signIn(parts, c, request.email, request.password))
}

async function signInWithPassword(parts: Parts, c: Ctx, body: Body<'signIn'>): Promise<Response> {
  const { email, password } = await body()
  try {
    return await answer(parts, c, await signIn(parts, c, email, password))
  } catch (error) {
    if (!(error instanceof SecondFactorNeeded)) throw error
    for (const cookie of error.setCookies) c.header('set-cookie', cookie, { append: true })
    return c.json({ secondFactor: true })
  }
}

async function signInWithCode(parts: Parts, c: Ctx, body: Body<'signInWithCode'>): Promise<Response> {
  const { accounts } = parts
  const { code } = await body()
  const cookie = c.req.header('cookie') ?? ''
  const email = await accounts.secondFactor.waiting(cookie)
  if (email === undefined) throw new SandlotError('unauthenticated', 'Sign in with your password first.')
  return answer(
    parts,
    c,
    await tryIn(parts, c, email, (from) => accounts.secondFactor.finish(cookie, code, from)),
  )
}

async function showInvitation(
  { accounts, limits }: Parts,
  c: Ctx,
  body: Body<'showInvitation'>,
): Promise<Response> {
  await limits.beginSignIn(c.var.address)
  const { token } = await body()
  const { role, email, createdBy, expiresAt } = await accounts.invitations.look(token)
  return c.json({ role, email, createdBy, expiresAt } satisfies InvitationOffer)
}

async function acceptInvitation(parts: Parts, c: Ctx, body: Body<'acceptInvitation'>): Promise<Response> {
  const { accounts, limits, log } = parts
  await limits.beginSignIn(c.var.address)
  const { token, ...user } = await body()
  const made = await accounts.invitations.accept(token, user)
  log.info({ user: made.id }, 'accepted an invitation')
  const { id, name, email, role } = made
  const from = { address: c.var.address }
  await accounts.audit.write({
    who: { id, name, email },
    from,
    what: 'invitation_accepted',
    after: { role },
  })
  return answer(parts, c, await signIn(parts, c, user.email, user.password))
}

async function signOut({ accounts, external, sockets }: Parts, c: Ctx): Promise<Response> {
  const cookie = c.req.header('cookie') ?? ''
  const before = await accounts.signIns.find(cookie)
  const url = before === undefined ? undefined : await external.endSessionUrl(before.signInId)
  const { signInId, setCookies } = await accounts.signIns.signOut(cookie)
  if (signInId !== undefined) sockets.signInEnded(signInId)
  if (before !== undefined)
    await accounts.audit.write({
      ...signedInFrom(before, c.var.address),
      what: 'signed_out',
    })
  for (const ended of setCookies) c.header('set-cookie', ended, { append: true })
  return url === undefined ? c.body(null, 204) : c.json({ url })
}

async function changePassword(
  { accounts, limits, sockets, log }: Parts,
  c: Ctx,
  body: Body<'changePassword'>,
): Promise<Response> {
  const caller = requireSignIn(c)
  const { id, email } = caller.account
  const change = await body()
  // A stolen sign-in must not allow guessing the password.
  const after = await limits.signIn({ address: c.var.address, email }, () =>
    accounts.passwords.change(c.req.header('cookie') ?? '', change),
  )
  c.set('caller', { ...after, via: 'sign-in', from: { ...c.var.caller.from, signIn: after.signInId } })
  sockets.signInsEnded(id, { was: caller.signInId, is: after.signInId })
  await accounts.audit.write({ ...actorOf(c.var.caller), what: 'password_changed' })
  log.info({ user: id, requestId: c.var.requestId }, 'changed their password')
  return c.body(null, 204)
}

async function changeName(parts: Parts, c: Ctx, body: Body<'changeName'>): Promise<Response> {
  const { accounts } = parts
  const { id } = c.var.caller.account
  const change = await body()
  await accounts.users.change(id, change, { ...actorOf(c.var.caller), what: 'person_changed' })
  await notifyPersonChanged(parts, id)
  return c.body(null, 204)
}

async function createKey({ accounts }: Parts, c: Ctx, body: Body<'createKey'>): Promise<Response> {
  const { account } = c.var.caller
  const { name, scopes, expiresInDays } = await body()
  if (scopes?.includes('admin') === true && account.role !== 'admin')
    throw new SandlotError('forbidden', 'Only an administrator can make a key with the scope “admin”.')
  const expiresAt = expiresInDays === undefined ? null : Date.now() + expiresInDays * DAY_MS
  const line = { ...actorOf(c.var.caller), what: 'key_made' } as const
  return c.json(await accounts.keys.create(account.id, name, { scopes, expiresAt }, line), 201)
}

async function deleteKey({ accounts, sockets }: Parts, c: Ctx, id: string): Promise<Response> {
  const { account } = c.var.caller
  const name = (await accounts.keys.list(account.id)).find((key) => key.id === id)?.name
  if (!(await accounts.keys.remove(account.id, id))) {
    throw new SandlotError('not_found', 'You have no such key.')
  }
  await accounts.audit.write({ ...actorOf(c.var.caller), what: 'key_deleted', whom: { id, name } })
  sockets.keyDeleted(id)
  return c.body(null, 204)
}
