/**
 * Identifies the caller by the cookie of a sign-in or by an API key, for HTTP and for the upgrade.
 */
import type { Account, ApiKey } from '@sandlot/shared/account/api'
import { SandlotError } from '@sandlot/shared/base/errors'
import { type AuditFrom, auditFrom } from '@sandlot/shared/account/agent-user'
import type { KeyScope } from '@sandlot/shared/account/sign-in-api'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import { z } from 'zod'
import type { OriginRule } from './origin.ts'

export type Caller = { account: Account; from: AuditFrom } & (
  | { via: 'sign-in'; signInId: string; setCookies: string[] }
  | { via: 'key'; keyId: string; scopes: KeyScope[] }
)

/** The headers that decide, lower-case names; and the address of the client. */
interface Credentials {
  cookie: string | undefined
  authorization: string | undefined
  origin: string | undefined
  host: string | undefined
  address: string
}

const SIGN_IN_FIRST = 'Sign in first, or send an API key as “Authorization: Bearer sk-sandlot-…”.'

/**
 * Throws `unauthenticated` or `bad_origin`. Browsers attach cookies to requests of any page, so
 * with `needsOrigin` a cookie counts only with the `Origin` of a page of ours. A key needs no
 * `Origin`, but a foreign one is refused.
 */
export async function findCaller(
  accounts: AccountsStore,
  isOurs: OriginRule,
  credentials: Credentials,
  needsOrigin: boolean,
): Promise<Caller> {
  const { cookie, authorization, origin, host, address } = credentials
  if (needsOrigin && origin !== undefined && !isOurs(origin, host)) throw badOrigin(origin)
  const key = /^Bearer\s+(\S+)$/i.exec(authorization ?? '')?.[1]
  if (authorization !== undefined) {
    const found = key === undefined ? undefined : await accounts.keys.find(key)
    if (found === undefined) throw new SandlotError('unauthenticated', 'This API key is not known.')
    return { ...found, via: 'key', from: { address, key: found.keyName } }
  }
  const found = cookie === undefined ? undefined : await accounts.signIns.find(cookie)
  if (found === undefined) throw new SandlotError('unauthenticated', SIGN_IN_FIRST)
  if (needsOrigin && origin === undefined) throw badOrigin(origin)
  return { ...found, via: 'sign-in', from: { address, signIn: found.signInId } }
}

/** By what a caller is found again, later and at another service. */
export const callerMark = z.object({
  userId: z.string(),
  via: z.enum(['sign-in', 'key']),
  /** The id of the sign-in, or of the key. */
  id: z.string(),
  from: auditFrom,
})
export type CallerMark = z.infer<typeof callerMark>

export function markOf(caller: Caller): CallerMark {
  const { account, from, via } = caller
  return { userId: account.id, via, id: caller.via === 'key' ? caller.keyId : caller.signInId, from }
}

/** The current caller; undefined: the account, the sign-in or the key has ended. */
export async function findMarked(
  accounts: Pick<AccountsStore, 'users' | 'keys' | 'signIns'>,
  { userId, via, id, from }: CallerMark,
): Promise<Caller | undefined> {
  const account = (await accounts.users.list()).find((user) => user.id === userId)
  if (account === undefined) return undefined
  if (via === 'sign-in') {
    const isThere = await hasSignIn(accounts, userId, id)
    return isThere ? { account, from, via, signInId: id, setCookies: [] } : undefined
  }
  const key = await keyOf(accounts, userId, id)
  return key && { account, from, via, keyId: id, scopes: key.scopes }
}

/** True if the caller's sign-in or key is still valid. */
export async function isStillIn(
  accounts: Pick<AccountsStore, 'keys' | 'signIns'>,
  caller: Caller,
): Promise<boolean> {
  const { id } = caller.account
  return caller.via === 'sign-in'
    ? hasSignIn(accounts, id, caller.signInId)
    : (await keyOf(accounts, id, caller.keyId)) !== undefined
}

async function hasSignIn(
  { signIns }: Pick<AccountsStore, 'signIns'>,
  userId: string,
  id: string,
): Promise<boolean> {
  return (await signIns.list(userId)).some((one) => one.id === id)
}

async function keyOf(
  accounts: Pick<AccountsStore, 'keys'>,
  userId: string,
  id: string,
): Promise<ApiKey | undefined> {
  const key = (await accounts.keys.list(userId)).find((one) => one.id === id)
  return key?.expiresAt != null && key.expiresAt <= Date.now() ? undefined : key
}

function badOrigin(origin: string | undefined): SandlotError {
  return new SandlotError(
    'bad_origin',
    origin === undefined
      ? 'A request with a cookie must carry the Origin of the page it comes from.'
      : `Pages of ${origin.slice(0, 200)} may not use this Sandlot. Its operator can allow them with SANDLOT_ALLOWED_ORIGINS, or set SANDLOT_PUBLIC_URL.`,
  )
}
