/**
 * better-auth, which only the files `auth*.ts` import, and what is specific to it: headers,
 * cookies, its errors.
 */
import type { Account } from '@sandlot/shared/api'
import { SandlotError } from '@sandlot/shared/errors'
import { betterAuth } from 'better-auth'
import { APIError } from 'better-auth/api'
import type { Kysely } from 'kysely'
import { createKeyedLock } from '@sandlot/shared/async/keyed-lock'
import { accountOf, toAccount } from './account-rows.ts'
import { makeExternalFlows } from './auth-external.ts'
import { type AuthOptions, IP_HEADER, authOptions } from './auth-options.ts'
import { type SecondFactors, makeSecondFactors } from './auth-second-factor.ts'
import type { ExternalFlows } from './external.ts'
import type { AccountsSchema } from './schema.ts'
import { type NewUser, type Origin, SecondFactorNeeded, type SignedIn } from './store.ts'

const WRONG_PASSWORD = 'That is not your current password.'

export interface Auth {
  external: ExternalFlows
  secondFactor: SecondFactors
  createUser(user: NewUser): Promise<Account>
  signIn(credentials: { email: string; password: string }, from: Origin): Promise<SignedIn>
  signOut(cookie: string): Promise<string[]>
  changePassword(cookie: string, change: { current: string; password: string }): Promise<SignedIn>
  /** Without the current password. Ends all sign-ins of the user. */
  setPassword(userId: string, password: string): Promise<void>
  find(cookie: string): Promise<SignedIn | undefined>
  /** Throws `forbidden`. */
  checkPassword(userId: string, password: string): Promise<void>
}

export function makeAuth(db: Kysely<AccountsSchema>, options: AuthOptions): Auth {
  const auth = betterAuth(authOptions(db, options))
  const { api, $context } = auth
  /**
   * By email address: everything that checks a password and then acts. Otherwise a sign-in that
   * checked it before a change and made its session after it would survive the end of all sign-ins.
   */
  const lock = createKeyedLock()

  const find = async (cookie: string): Promise<SignedIn | undefined> => {
    const { headers, response } = await api.getSession({
      headers: new Headers({ cookie }),
      returnHeaders: true,
    })
    if (response === null) return undefined
    return {
      account: await accountOf(db, response.user),
      signInId: response.session.id,
      setCookies: headers.getSetCookie(),
    }
  }

  /** The sign-in that an answer with these headers has begun. */
  const begun = async (headers: Headers): Promise<SignedIn> => {
    const setCookies = headers.getSetCookie()
    const signedIn = await find(cookieOf(setCookies))
    if (signedIn === undefined) throw new Error('accounts: a sign-in that just began is not there')
    return { ...signedIn, setCookies }
  }

  return {
    find,
    external: makeExternalFlows({ db, auth, headersOf, begun }),
    secondFactor: makeSecondFactors({ auth, headersOf, begun }),
    async createUser(user) {
      try {
        const { user: made } = await api.createUser({ body: user })
        return toAccount(made, [], false)
      } catch (error) {
        throw translate(error)
      }
    },
    async signIn(credentials, from) {
      try {
        return await lock.run(credentials.email.toLowerCase(), async () => {
          const answer = await api.signInEmail({
            body: credentials,
            headers: headersOf(from),
            returnHeaders: true,
          })
          if ('twoFactorRedirect' in answer.response)
            throw new SecondFactorNeeded(answer.headers.getSetCookie())
          return begun(answer.headers)
        })
      } catch (error) {
        throw translate(error)
      }
    },
    async changePassword(cookie, { current, password }) {
      const headers = new Headers({ cookie })
      try {
        // Only for the key of the queue: without refresh, since a prolonged cookie would be lost
        // here.
        const asking = await api.getSession({ headers, query: { disableRefresh: true } })
        return await lock.run(asking?.user.email ?? '', async () => {
          const answer = await api.changePassword({
            body: { currentPassword: current, newPassword: password, revokeOtherSessions: true },
            headers,
            returnHeaders: true,
          })
          return begun(answer.headers)
        })
      } catch (error) {
        throw translatePasswordChange(error)
      }
    },
    async setPassword(userId, password) {
      const { internalAdapter, password: passwords } = await $context
      const user = await internalAdapter.findUserById(userId)
      await lock.run(user?.email ?? '', async () => {
        await internalAdapter.updatePassword(userId, await passwords.hash(password))
        await internalAdapter.deleteUserSessions(userId)
      })
    },
    async checkPassword(userId, password) {
      const { internalAdapter, password: passwords } = await $context
      const accounts = await internalAdapter.findAccounts(userId)
      const hash = accounts.find(({ providerId }) => providerId === 'credential')?.password
      if (hash == null || !(await passwords.verify({ hash, password })))
        throw new SandlotError('forbidden', WRONG_PASSWORD)
    },
    async signOut(cookie) {
      const { headers } = await api.signOut({ headers: new Headers({ cookie }), returnHeaders: true })
      return headers.getSetCookie()
    },
  }
}

function headersOf({ ip, userAgent }: Origin): Headers {
  const headers = new Headers()
  if (ip !== undefined) headers.set(IP_HEADER, ip)
  if (userAgent !== undefined) headers.set('user-agent', userAgent.slice(0, 500))
  return headers
}

/** The `Cookie` header that a browser would send after these `Set-Cookie` values. */
function cookieOf(setCookies: readonly string[]): string {
  return setCookies.map((cookie) => cookie.slice(0, cookie.indexOf(';'))).join('; ')
}

/**
 * better-auth's refusals as ours. Its texts are safe to show; whatever else is thrown stays a bug.
 */
function translate(error: unknown): unknown {
  if (!(error instanceof APIError)) return error
  if (error.statusCode === 401 || error.statusCode === 403) {
    return new SandlotError('unauthenticated', 'Wrong e-mail or password.')
  }
  if (codeOf(error).startsWith('USER_ALREADY_EXISTS')) {
    return new SandlotError('conflict', 'This email address has an account already.')
  }
  return new SandlotError('bad_request', error.body?.message ?? 'The account data was refused.', {
    cause: error,
  })
}

/** Not `unauthenticated` for a wrong password: the caller is signed in, and stays so. */
function translatePasswordChange(error: unknown): unknown {
  if (!(error instanceof APIError)) return error
  if (error.statusCode === 401) return new SandlotError('unauthenticated', 'Sign in first.')
  if (codeOf(error) === 'INVALID_PASSWORD') return new SandlotError('forbidden', WRONG_PASSWORD)
  return translate(error)
}

function codeOf(error: APIError): string {
  const code: unknown = error.body?.['code']
  return typeof code === 'string' ? code : ''
}
