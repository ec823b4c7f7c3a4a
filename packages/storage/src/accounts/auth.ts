/**
 * The only file that imports better-auth: its options, and what is specific to it (headers,
 * cookies, its errors).
 */
import { hash, verify } from '@node-rs/argon2'
import { MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from '@sandlot/shared/api'
import type { Account } from '@sandlot/shared/api'
import { SandlotError } from '@sandlot/shared/errors'
import { betterAuth } from 'better-auth'
import { APIError } from 'better-auth/api'
import { admin } from 'better-auth/plugins/admin'
import { adminAc, userAc } from 'better-auth/plugins/admin/access'
import type { Kysely } from 'kysely'
import { createKeyedLock } from '@sandlot/shared/async/keyed-lock'
import { teamIdsOf, toAccount } from './account-rows.ts'
import type { AccountsSchema } from './schema.ts'
import type { NewUser, Origin, SignedIn } from './store.ts'

export interface AuthOptions {
  /** Signs the cookies. At least 32 random characters. */
  secret: string
  /** The address people type; `https:` makes the cookies `Secure`. */
  publicUrl: string
}

/** A week; prolonged at most once a day. */
const SIGN_IN_SECONDS = 7 * 24 * 60 * 60
const PROLONG_AFTER_SECONDS = 24 * 60 * 60
/**
 * Set by us from the connection, never by a client: the headers that better-auth sees are made
 * here.
 */
const IP_HEADER = 'x-sandlot-client-ip'

/**
 * Options of better-auth; exported for the test that compares our migrations with what it wants.
 */
export function authOptions(db: Kysely<AccountsSchema>, options: AuthOptions) {
  return {
    appName: 'Sandlot',
    baseURL: options.publicUrl,
    basePath: '/api/auth',
    secret: options.secret,
    telemetry: { enabled: false },
    logger: { disabled: true },
    database: { db, type: 'sqlite' as const, transaction: true },
    user: { modelName: 'auth_user' },
    session: {
      modelName: 'auth_session',
      expiresIn: SIGN_IN_SECONDS,
      updateAge: PROLONG_AFTER_SECONDS,
    },
    account: { modelName: 'auth_account' },
    verification: { modelName: 'auth_verification' },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: MIN_PASSWORD_CHARS,
      maxPasswordLength: MAX_PASSWORD_CHARS,
      // The defaults of the library: argon2id, 19 MiB, two passes.
      password: {
        hash: (password: string) => hash(password),
        verify: (given: { hash: string; password: string }) => verify(given.hash, given.password),
      },
    },
    // Limits are the service's, by address and by account; better-auth's own count requests only by
    // address.
    rateLimit: { enabled: false },
    advanced: {
      cookiePrefix: 'sandlot',
      useSecureCookies: options.publicUrl.startsWith('https:'),
      ipAddress: { ipAddressHeaders: [IP_HEADER] },
    },
    plugins: [
      admin({
        defaultRole: 'member',
        adminRoles: ['admin'],
        roles: { admin: adminAc, member: userAc, guest: userAc },
      }),
    ],
  }
}

interface Auth {
  createUser(user: NewUser): Promise<Account>
  signIn(credentials: { email: string; password: string }, from: Origin): Promise<SignedIn>
  signOut(cookie: string): Promise<string[]>
  changePassword(cookie: string, change: { current: string; password: string }): Promise<SignedIn>
  /** Without the current password. Ends all sign-ins of the user. */
  setPassword(userId: string, password: string): Promise<void>
  find(cookie: string): Promise<SignedIn | undefined>
}

export function makeAuth(db: Kysely<AccountsSchema>, options: AuthOptions): Auth {
  const { api, $context } = betterAuth(authOptions(db, options))
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
      account: toAccount(response.user, await teamIdsOf(db, response.user.id)),
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
    async createUser(user) {
      try {
        const { user: made } = await api.createUser({ body: user })
        return toAccount(made, [])
      } catch (error) {
        throw translate(error)
      }
    },
    async signIn(credentials, from) {
      const headers = new Headers()
      if (from.ip !== undefined) headers.set(IP_HEADER, from.ip)
      if (from.userAgent !== undefined) headers.set('user-agent', from.userAgent.slice(0, 500))
      try {
        return await lock.run(credentials.email.toLowerCase(), async () => {
          const answer = await api.signInEmail({ body: credentials, headers, returnHeaders: true })
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
    async signOut(cookie) {
      const { headers } = await api.signOut({ headers: new Headers({ cookie }), returnHeaders: true })
      return headers.getSetCookie()
    },
  }
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
  if (codeOf(error) === 'INVALID_PASSWORD')
    return new SandlotError('forbidden', 'That is not your current password.')
  return translate(error)
}

function codeOf(error: APIError): string {
  const code: unknown = error.body?.['code']
  return typeof code === 'string' ? code : ''
}
