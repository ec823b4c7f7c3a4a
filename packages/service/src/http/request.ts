/** Reading a request: its caller, its body, its address. */
import type { IncomingMessage } from 'node:http'
import { SandlotError } from '@sandlot/shared/base/errors'
import { parseExactly } from '@sandlot/shared/base/exact-numbers'
import { parseStorable } from '@sandlot/shared/base/storable-text'
import type { MiddlewareHandler } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { KeyScope } from '@sandlot/shared/account/sign-in-api'
import type { z } from 'zod'
import { findCaller, type Caller } from '../auth/caller.ts'
import { kindOfRequest } from '../auth/user-traffic.ts'
import { requireScope } from '../auth/scopes.ts'
import { problemsOf } from '../socket/frame.ts'
import type { AppEnv, Ctx, Parts } from './context.ts'
import { peerOf } from '../auth/address.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Only with a sign-in or an API key, and within the share of its user; a cookie changes things only
 * from a page of ours. Prolongs the sign-in. A key needs the scope; `cookie`: `pagesOnly` refuses
 * it.
 */
export function requireCaller(
  { accounts, isOurs, traffic }: Pick<Parts, 'accounts' | 'isOurs' | 'traffic'>,
  scope: KeyScope | 'cookie',
): MiddlewareHandler<AppEnv> {
  return createMiddleware<AppEnv>(async function callerIsKnown(c, next) {
    const credentials = { ...credentialsIn(c.env.incoming), address: c.var.address }
    const find = () => findCaller(accounts, isOurs, credentials, !SAFE_METHODS.has(c.req.method))
    const caller = await find()
    if (caller.via === 'key' && scope !== 'cookie') requireScope(caller.scopes, scope)
    const { id } = caller.account
    await traffic.request(id, kindOfRequest(c.req.method, c.req.path))
    c.set('caller', caller)
    c.set('findCallerAgain', find)
    await next()
    const { body, headers } = c.res
    const isData = headers.get('content-type')?.startsWith('application/json') ?? true
    // Data is short, but for what is saved as a file.
    if (body !== null && (!isData || headers.has('content-disposition')))
      c.res = new Response(traffic.paced(id, body), c.res)
    // The handler may have begun another sign-in in place of this one.
    const after = c.var.caller
    if (after.via === 'sign-in') {
      for (const cookie of after.setCookies) c.header('set-cookie', cookie, { append: true })
    }
  })
}

/** The body as it comes, at the pace of its user. */
export function pacedBody(c: Ctx, { traffic }: Parts): ReadableStream<Uint8Array> | undefined {
  const { body } = c.req.raw
  return body === null ? undefined : traffic.paced(c.var.caller.account.id, body)
}

/** Requests without a caller yet (set-up, sign-in): refused from foreign pages. */
export function requireOurOrigin({ isOurs }: Pick<Parts, 'isOurs'>): MiddlewareHandler<AppEnv> {
  return createMiddleware<AppEnv>(async function originIsOurs(c, next) {
    const origin = c.req.header('origin')
    if (origin !== undefined && !isOurs(origin, c.req.header('host'))) {
      throw new SandlotError('bad_origin', `Pages of ${origin.slice(0, 200)} may not use this Sandlot.`)
    }
    await next()
  })
}

/**
 * A key acts as its owner in chats, but makes no keys and changes no ways in: a leaked one must not
 * outlive its deletion.
 */
export function requireSignIn(c: Ctx): Extract<Caller, { via: 'sign-in' }> {
  const { caller } = c.var
  if (caller.via === 'sign-in') return caller
  throw new SandlotError('forbidden', 'An API key cannot do this. Sign in on the page.')
}

/** Headers by which `findCaller` finds who sends a request. */
export function credentialsIn({ headers: { cookie, authorization, origin, host } }: IncomingMessage) {
  return { cookie, authorization, origin, host }
}

/**
 * Call once the body has arrived: the sender determines when, and may have been removed or signed
 * out since. Throws `unauthenticated`, and `forbidden` when the role has changed.
 */
export async function recheckCaller(c: Ctx): Promise<void> {
  const before = c.var.caller
  const now = await c.var.findCallerAgain()
  if (now.account.id !== before.account.id || now.account.role !== before.account.role)
    throw new SandlotError('forbidden', 'Your permissions have changed. Try again.')
  // The first check may have prolonged the sign-in, so the second has no cookies to set.
  if (now.via === 'sign-in' && before.via === 'sign-in')
    c.set('caller', { ...now, setCookies: [...before.setCookies, ...now.setCookies] })
}

/** Refuses U+0000 in paths and queries: a name without it would be that of something else. */
export const textAddressesOnly = createMiddleware<AppEnv>(async function addressIsText(c, next) {
  if (c.req.url.includes('%00'))
    throw new SandlotError('bad_request', 'The address has the character U+0000 (%00). Leave it out.')
  await next()
})

/** After `requireCaller`: an administrator, with a key only if it has the scope `admin`. */
export const administratorsOnly = createMiddleware<AppEnv>(async function isAdministrator(c, next) {
  const { caller } = c.var
  if (caller.via === 'key') requireScope(caller.scopes, 'admin')
  if (caller.account.role !== 'admin')
    throw new SandlotError('forbidden', 'Only an administrator can do this.')
  await next()
})

/** After `requireCaller`: refuses guests, with this error. */
export function membersOnly(error: string): MiddlewareHandler<AppEnv> {
  return createMiddleware<AppEnv>(async function isMember(c, next) {
    if (c.var.caller.account.role === 'guest') throw new SandlotError('forbidden', error)
    await next()
  })
}

/** After `requireCaller`: see `requireSignIn`. */
export const pagesOnly = createMiddleware<AppEnv>(async function isSignedIn(c, next) {
  requireSignIn(c)
  await next()
})

/**
 * The validated JSON body; after `requireCaller`, the caller is checked again once it has arrived.
 * Throws `bad_request` and what `recheckCaller` throws.
 */
export async function readBody<S extends z.ZodType>(c: Ctx, shape: S): Promise<z.output<S>> {
  const type = c.req.header('content-type') ?? ''
  // Not only neatness: other types can be sent across sites without asking.
  if (!/^application\/json\b/i.test(type))
    throw new SandlotError('bad_request', 'Send JSON as application/json.')
  const value = await readJson(c)
  if (c.var.caller !== undefined) await recheckCaller(c)
  const parsed = parseStorable(shape, value)
  if (parsed.success) return parsed.data
  throw new SandlotError('bad_request', `The body does not fit: ${problemsOf(parsed.error)}`)
}

async function readJson(c: Ctx): Promise<unknown> {
  const text = await c.req.text()
  try {
    return parseExactly(text)
  } catch (error) {
    throw new SandlotError('bad_request', 'The body is not JSON.', { cause: error })
  }
}

/** From this machine, and not passed on by a proxy on this machine. */
export function isLocal(c: Ctx): boolean {
  const passedOn = ['x-forwarded-for', 'forwarded', 'x-real-ip'].some(
    (name) => c.req.header(name) !== undefined,
  )
  return !passedOn && /^(127\.|::1$)/.test(peerOf(c.env.incoming))
}
