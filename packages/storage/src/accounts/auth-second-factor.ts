/** The second factor through better-auth's plugin: an app's codes, and recovery codes. */
import { createHash } from 'node:crypto'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { NewSecondFactor } from '@sandlot/shared/account/sign-in-api'
import { APIError } from 'better-auth/api'
import type { Kysely } from 'kysely'
import type { BetterAuth } from './auth-options.ts'
import { type Credential, credentialOf, ifStillOwner, WRONG_PASSWORD } from './credentials.ts'
import type { AccountsSchema } from '../tables/accounts.ts'
import type { Origin, SignedIn } from '../tables/account-records.ts'

export interface SecondFactors {
  isOn(userId: string): Promise<boolean>
  /** Throws `forbidden` (wrong password) and `conflict` (already active). */
  begin(cookie: string, password: string): Promise<NewSecondFactor>
  /** Activates it. Throws `forbidden` for a wrong code. */
  confirm(cookie: string, code: string): Promise<SignedIn>
  /** Throws `forbidden`: wrong password or code. */
  disable(cookie: string, password: string, code: string): Promise<SignedIn>
  /** By an administrator, for a person who has lost it. */
  remove(userId: string): Promise<void>
  /** The account's address of a sign-in that waits for a code. */
  waiting(cookie: string): Promise<string | undefined>
  /** Finishes that sign-in. Throws `unauthenticated`. */
  finish(cookie: string, code: string, from: Origin): Promise<SignedIn>
}

interface SecondFactorOptions {
  db: Kysely<AccountsSchema>
  auth: BetterAuth
  headersOf: (from: Origin) => Headers
  begun: (headers: Headers) => Promise<SignedIn>
}

const MODEL = 'twoFactor'
const THERE_IS_ONE = 'There is a second factor already. Disable it first.'
const WRONG_CODE = 'That code isn’t valid. Each code works once; wait for the next one.'
/** Prefix of rows for used codes, in `auth_verification`. */
const USED = 'totp-used-'
/** Longer than a code is accepted. */
const USED_MS = 2 * 60_000
const APP_CODE = /^\d{6}$/
const COOKIE = /(?:^|[.\-_])two_factor$/

export function makeSecondFactors({ db, auth, headersOf, begun }: SecondFactorOptions): SecondFactors {
  const { api, $context } = auth
  const where = (userId: string) => [{ field: 'userId', value: userId }]
  const signedInAs = async (cookie: string): Promise<Credential | undefined> => {
    const headers = new Headers({ cookie })
    const asking = await api.getSession({ headers, query: { disableRefresh: true } })
    return asking === null ? undefined : credentialOf(db, 'id', asking.user.id)
  }
  /** The user of a sign-in that waits for a code. */
  const waitingUser = async (cookie: string): Promise<string | undefined> => {
    const [, value = ''] = challengeOf(cookie)?.split('=') ?? []
    const identifier = decoded(value).split('.')[0] ?? ''
    if (!identifier.startsWith('2fa-')) return undefined
    return (await (await $context).internalAdapter.findVerificationValue(identifier))?.value
  }

  /** The response's headers. Throws `APIError`. `by`: an app only, or recovery codes too. */
  const verify = async (
    userId: string | undefined,
    code: string,
    headers: Headers,
    by: 'app' | 'any' = 'any',
  ): Promise<Headers> => {
    const given = code.replaceAll(/\s/g, '')
    if (!(await isUnused(db, userId, given))) throw new APIError('UNAUTHORIZED', { code: 'INVALID_CODE' })
    const request = { body: { code: given }, headers, returnHeaders: true } as const
    const isOfApp = by === 'app' || APP_CODE.test(given)
    const answer = isOfApp ? await api.verifyTOTP(request) : await api.verifyBackupCode(request)
    return answer.headers
  }

  return {
    async isOn(userId) {
      const user = await (await $context).internalAdapter.findUserById(userId)
      return user !== null && 'twoFactorEnabled' in user && user.twoFactorEnabled === true
    },
    begin: (cookie, password) =>
      translated(async () => {
        const made = await api.enableTwoFactor({
          body: { password, method: 'totp' },
          headers: new Headers({ cookie }),
        })
        if (made.method !== 'totp') throw new Error('accounts: another second factor than asked for')
        return { uri: made.totpURI, recoveryCodes: made.backupCodes }
      }),
    async confirm(cookie, code) {
      const known = await signedInAs(cookie)
      if (known?.secondFactor === true) throw new SandlotError('conflict', THERE_IS_ONE)
      return ifStillOwner(db, known && { ...known, secondFactor: true }, () =>
        translated(async () => begun(await verify(known?.userId, code, new Headers({ cookie }), 'app'))),
      )
    },
    async disable(cookie, password, code) {
      const known = await signedInAs(cookie)
      const { password: passwords } = await $context
      // Before the code, which is valid once.
      if (known !== undefined && !(await passwords.verify({ hash: known.hash, password })))
        throw new SandlotError('forbidden', WRONG_PASSWORD)
      const headers = new Headers({ cookie })
      await translated(() => verify(known?.userId, code, headers))
      return ifStillOwner(db, known && { ...known, secondFactor: false }, () =>
        translated(async () => {
          const disabled = await api.disableTwoFactor({ body: { password }, headers, returnHeaders: true })
          return begun(disabled.headers)
        }),
      )
    },
    async remove(userId) {
      const { adapter, internalAdapter } = await $context
      await internalAdapter.updateUser(userId, { twoFactorEnabled: false })
      await adapter.deleteMany({ model: MODEL, where: where(userId) })
    },
    async waiting(cookie) {
      const userId = await waitingUser(cookie)
      if (userId === undefined) return undefined
      return (await (await $context).internalAdapter.findUserById(userId))?.email
    },
    async finish(cookie, code, from) {
      const userId = await waitingUser(cookie)
      const known = userId === undefined ? undefined : await credentialOf(db, 'id', userId)
      const headers = headersOf(from)
      // Without the cookie of a sign-in, which would select its account.
      headers.set('cookie', challengeOf(cookie) ?? '')
      return ifStillOwner(db, known, async () => {
        try {
          return await begun(await verify(userId, code, headers))
        } catch (error) {
          if (!(error instanceof APIError)) throw error
          throw new SandlotError(
            'unauthenticated',
            /COOKIE|ATTEMPTS|LOCKED/.test(codeOf(error))
              ? 'Sign in again with your password: this try is over.'
              : WRONG_CODE,
          )
        }
      })
    },
  }
}

/** Marks a code of an app as used by this person, at all services; false: it was used. */
async function isUnused(
  db: Kysely<AccountsSchema>,
  userId: string | undefined,
  code: string,
): Promise<boolean> {
  // better-auth itself invalidates recovery codes.
  if (userId === undefined || !APP_CODE.test(code)) return true
  const now = Date.now()
  const [at, expiresAt] = [new Date(now).toISOString(), new Date(now + USED_MS).toISOString()]
  await db
    .deleteFrom('auth_verification')
    .where('id', 'like', `${USED}%`)
    .where('expiresAt', '<', at)
    .execute()
  const id = `${USED}${createHash('sha256').update(`${userId} ${code}`).digest('hex')}`
  const { numInsertedOrUpdatedRows: marked } = await db
    .insertInto('auth_verification')
    .values({ id, identifier: id, value: userId, expiresAt, createdAt: at, updatedAt: at })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .executeTakeFirstOrThrow()
  return marked === 1n
}

/** The cookie that identifies the waiting sign-in. */
function challengeOf(cookie: string): string | undefined {
  return cookie.split(/;\s*/).find((pair) => COOKIE.test(pair.split('=')[0] ?? ''))
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return '' // Nothing of ours made it.
  }
}

/** Converts an `APIError` into an error that is safe to show. */
async function translated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw translate(error)
  }
}

function translate(error: unknown): unknown {
  if (!(error instanceof APIError)) return error
  const code = codeOf(error)
  if (code === 'INVALID_PASSWORD') return new SandlotError('forbidden', WRONG_PASSWORD)
  if (code === 'INVALID_CODE' || code === 'INVALID_BACKUP_CODE')
    return new SandlotError('forbidden', WRONG_CODE)
  if (code === 'TOTP_ALREADY_ENABLED') return new SandlotError('conflict', THERE_IS_ONE)
  if (code === 'TOTP_NOT_ENABLED')
    return new SandlotError('conflict', 'There is no second factor to confirm.')
  return new SandlotError('bad_request', error.body?.message ?? 'The second factor was refused.')
}

function codeOf(error: APIError): string {
  const code: unknown = error.body?.['code']
  return typeof code === 'string' ? code : ''
}
