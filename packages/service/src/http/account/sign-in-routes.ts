/** Sign-in by providers: which there are, there and back, and links to one's account. */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { AccountWays, SignInEntry, SignInWays } from '@sandlot/shared/account/sign-in-api'
import type { SignedIn } from '@sandlot/storage/tables/account-records'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { actorOf } from '../../auth/agent-user.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Body, Handlers } from '../actions.ts'
import { requireSignIn } from '../request.ts'
import { canReset } from './reset-routes.ts'

/** The invitation with which a browser went to a provider. */
const INVITATION_COOKIE = 'sandlot_invitation'
const INVITATION_SECONDS = 10 * 60

export function signInHandlers(parts: Parts) {
  const { config, external } = parts

  return {
    listWaysIn: (c) =>
      c.json({
        local: config.localSignIn,
        providers: external.providers.map((provider) => ({
          id: provider.config.id,
          name: provider.name,
          ready: provider.problem === undefined,
        })),
        reset: canReset(parts),
      } satisfies SignInWays),
    beginSignIn: (c, body) => beginSignIn(parts, c, c.req.param('id'), body),
    linkProvider: (c, body) => beginLink(parts, c, c.req.param('id'), body),
    finishSignIn: (c) => finishSignIn(parts, c, c.req.param('id')),
    getSignInProblem: (c) => showProblem(parts, c, c.req.param('id')),
    listWays: (c) => listWays(parts, c),
    beginSecondFactor: (c, body) => beginSecondFactor(parts, c, body),
    confirmSecondFactor: (c, body) => confirmSecondFactor(parts, c, body),
    disableSecondFactor: (c, body) => disableSecondFactor(parts, c, body),
    listSignIns: (c) => listSignIns(parts, c),
    endOtherSignIns: (c) => endOtherSignIns(parts, c),
    endSignIn: (c) => endSignIn(parts, c, c.req.param('id')),
    unlinkProvider: (c) => unlinkProvider(parts, c, c.req.param('id')),
  } satisfies Partial<Handlers>
}

function cookieScopeOf({ config }: Parts) {
  const secure = config.publicUrl?.startsWith('https:') === true
  return { path: '/api/sign-in', httpOnly: true, sameSite: 'Lax', secure } as const
}

function sendTo(c: Ctx, { url, setCookies }: { url: string; setCookies: string[] }): Response {
  for (const cookie of setCookies) c.header('set-cookie', cookie, { append: true })
  return c.json({ url })
}

async function beginSignIn(parts: Parts, c: Ctx, id: string, body: Body<'beginSignIn'>): Promise<Response> {
  const { accounts, external, limits } = parts
  await limits.beginSignIn(c.var.address)
  const { returnTo, invitation } = await body()
  const begun = await external.begin(id, returnTo)
  // Also where this one is refused, which must not be tried at a later sign-in.
  deleteCookie(c, INVITATION_COOKIE, cookieScopeOf(parts))
  if (invitation !== undefined) {
    await accounts.invitations.look(invitation)
    setCookie(c, INVITATION_COOKIE, invitation, { ...cookieScopeOf(parts), maxAge: INVITATION_SECONDS })
  }
  return sendTo(c, begun)
}

async function beginLink(parts: Parts, c: Ctx, id: string, body: Body<'linkProvider'>): Promise<Response> {
  const { accounts, external } = parts
  const { account } = c.var.caller
  const { returnTo, password } = await body()
  // A stolen sign-in must not become a way in that stays.
  if (await accounts.external.hasPassword(account.id)) await checkPassword(parts, c, password)
  const begun = await external.beginLink(id, returnTo, c.req.header('cookie') ?? '')
  deleteCookie(c, INVITATION_COOKIE, cookieScopeOf(parts))
  return sendTo(c, begun)
}

async function finishSignIn(parts: Parts, c: Ctx, id: string): Promise<Response> {
  const { external, limits, metrics } = parts
  const address = c.var.address
  await limits.beginSignIn(address)
  // It counts for this sign-in only, however that ends.
  deleteCookie(c, INVITATION_COOKIE, cookieScopeOf(parts))
  const { to, setCookies } = await external.finish(
    id,
    c.req.query(),
    c.req.header('cookie') ?? '',
    { ip: address, userAgent: c.req.header('user-agent') },
    getCookie(c, INVITATION_COOKIE),
  )
  metrics.signIn(setCookies.length > 0 ? 'ok' : 'refused')
  for (const cookie of setCookies) c.header('set-cookie', cookie, { append: true })
  return c.redirect(to)
}

function showProblem({ external }: Parts, c: Ctx, id: string): Response {
  const message = external.problem(id)
  if (message === undefined)
    throw new SandlotError('not_found', 'This sign-in problem has expired. Sign in again.')
  return c.json({ message })
}

async function listWays({ accounts, external }: Parts, c: Ctx): Promise<Response> {
  const { account } = c.var.caller
  const links = await accounts.external.links(account.id)
  return c.json({
    password: await accounts.external.hasPassword(account.id),
    secondFactor: await accounts.secondFactor.isOn(account.id),
    providers: external.providers.flatMap(({ key, name, config: { id } }) =>
      links.filter((link) => link.key === key).map(({ linkedAt }) => ({ id, name, linkedAt })),
    ),
  } satisfies AccountWays)
}

async function beginSecondFactor(parts: Parts, c: Ctx, body: Body<'beginSecondFactor'>): Promise<Response> {
  const { accounts } = parts
  const { account } = c.var.caller
  const { password } = await body()
  const begun = await limited(parts, c, account.email, () =>
    accounts.secondFactor.begin(c.req.header('cookie') ?? '', password),
  )
  return c.json(begun)
}

async function confirmSecondFactor(
  parts: Parts,
  c: Ctx,
  body: Body<'confirmSecondFactor'>,
): Promise<Response> {
  const { accounts } = parts
  const { account } = c.var.caller
  const { code } = await body()
  const after = await limited(parts, c, account.email, () =>
    accounts.secondFactor.confirm(c.req.header('cookie') ?? '', code),
  )
  return continueSignedIn(parts, c, after, 'second_factor_on')
}

async function disableSecondFactor(
  parts: Parts,
  c: Ctx,
  body: Body<'disableSecondFactor'>,
): Promise<Response> {
  const { accounts } = parts
  const { account } = c.var.caller
  const { password, code } = await body()
  const after = await limited(parts, c, account.email, () =>
    accounts.secondFactor.disable(c.req.header('cookie') ?? '', password, code),
  )
  return continueSignedIn(parts, c, after, 'second_factor_off')
}

async function listSignIns({ accounts, external }: Parts, c: Ctx): Promise<Response> {
  const { account, signInId } = requireSignIn(c)
  const rows = await accounts.signIns.list(account.id)
  return c.json({
    signIns: rows.map(({ id, ip, userAgent, provider, since, lastUsedAt }) => ({
      id,
      current: id === signInId,
      device: deviceOf(userAgent ?? ''),
      address: ip,
      provider: provider === null ? null : external.nameOf(provider),
      since,
      lastUsedAt,
    })),
  } satisfies { signIns: SignInEntry[] })
}

async function endOtherSignIns({ accounts, log, sockets }: Parts, c: Ctx): Promise<Response> {
  const { account, signInId } = requireSignIn(c)
  await accounts.signIns.endOthers(account.id, signInId)
  sockets.signInsEnded(account.id, { was: signInId, is: signInId })
  const whom = { name: 'All others' }
  await accounts.audit.write({ ...actorOf(c.var.caller), what: 'sign_in_ended', whom })
  log.info({ user: account.id }, 'ended their other sign-ins')
  return c.body(null, 204)
}

async function endSignIn({ accounts, log, sockets }: Parts, c: Ctx, id: string): Promise<Response> {
  const { account } = c.var.caller
  if (!(await accounts.signIns.end(account.id, id)))
    throw new SandlotError('not_found', 'You have no such sign-in.')
  sockets.signInEnded(id)
  await accounts.audit.write({ ...actorOf(c.var.caller), what: 'sign_in_ended', whom: { id } })
  log.info({ user: account.id }, 'ended one of their sign-ins')
  return c.body(null, 204)
}

async function unlinkProvider({ accounts, external, log }: Parts, c: Ctx, id: string): Promise<Response> {
  const { account } = c.var.caller
  if (!(await accounts.external.unlink(account.id, external.keyOf(id))))
    throw new SandlotError('not_found', 'Your account is not linked to this provider.')
  const whom = { id, name: external.nameOf(external.keyOf(id)) }
  await accounts.audit.write({ ...actorOf(c.var.caller), what: 'provider_unlinked', whom })
  log.info({ user: account.id, provider: id }, 'unlinked a provider')
  return c.body(null, 204)
}

/** The same number of tries as for a sign-in: a stolen sign-in must not allow guessing. */
async function limited<T>({ limits }: Parts, c: Ctx, email: string, attempt: () => Promise<T>): Promise<T> {
  return limits.signIn({ address: c.var.address, email }, attempt)
}

/** With this sign-in in place of the caller's; all others end. */
async function continueSignedIn(
  { accounts, log, sockets }: Parts,
  c: Ctx,
  after: SignedIn,
  what: 'second_factor_on' | 'second_factor_off',
): Promise<Response> {
  const { account, signInId } = requireSignIn(c)
  await accounts.signIns.endOthers(account.id, after.signInId)
  sockets.signInsEnded(account.id, { was: signInId, is: after.signInId })
  c.set('caller', { ...after, via: 'sign-in', from: { ...c.var.caller.from, signIn: after.signInId } })
  await accounts.audit.write({ ...actorOf(c.var.caller), what })
  log.info({ user: account.id }, what)
  return c.body(null, 204)
}

async function checkPassword(parts: Parts, c: Ctx, password: string | undefined): Promise<void> {
  const { account } = c.var.caller
  if (password === undefined) throw new SandlotError('forbidden', 'Give your password to link a provider.')
  await limited(parts, c, account.email, () => parts.accounts.passwords.check(account.id, password))
}

/** In the order in which they are tried: an earlier one also names later ones. */
const BROWSERS: readonly [RegExp, string][] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\/|\bOpera\b/, 'Opera'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/\bChrom(?:e|ium)\/|\bCriOS\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]

const SYSTEMS: readonly [RegExp, string][] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

const MAX_CHARS = 60

/** “Firefox on Linux”, from the header of a request; as it is where it is of no browser. */
function deviceOf(userAgent: string): string {
  const name = (all: readonly [RegExp, string][]): string | undefined =>
    all.find(([pattern]) => pattern.test(userAgent))?.[1]
  const browser = name(BROWSERS)
  const system = name(SYSTEMS)
  if (browser === undefined && system === undefined) return userAgent.slice(0, MAX_CHARS) || 'unknown'
  return [browser ?? 'A browser', ...(system === undefined ? [] : [system])].join(' on ')
}
