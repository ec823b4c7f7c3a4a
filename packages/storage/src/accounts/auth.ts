/**
 * better-auth, imported only by the files `auth*.ts`, and its specifics: headers, cookies, its
 * errors.
 */
import { createHash } from 'node:crypto'
import { type Account, MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from '@sandlot/shared/account/api'
import { SandlotError } from '@sandlot/shared/base/errors'
import { betterAuth } from 'better-auth'
import { APIError } from 'better-auth/api'
import type { Kysely } from 'kysely'
import { accountOf, toAccount } from './account-rows.ts'
import { makeExternalFlows } from './auth-external.ts'
import { type AuthOptions, IP_HEADER, authOptions } from './auth-options.ts'
import { type SecondFactors, makeSecondFactors } from './auth-second-factor.ts'
import { credentialOf, replacePassword, ifStillOwner, WRONG_PASSWORD } from './credentials.ts'
import type { ExternalFlows } from './external.ts'
import type { AccountsSchema } from '../tables/accounts.ts'
import type { Tickets } from './store.ts'
import { type NewUser, type Origin, SecondFactorNeeded, type SignedIn } from '../tables/account-records.ts'

const SIGN_IN_FIRST = 'Sign in first.'
const TICKET = 'ticket-'
const PASSWORD_LENGTH = `A password has ${MIN_PASSWORD_CHARS} to ${MAX_PASSWORD_CHARS} characters.`

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
  tickets: Tickets
}

export function makeAuth(db: Kysely<AccountsSchema>, options: AuthOptions): Auth {
  const auth = betterAuth(authOptions(db, options))
  const { api, $context } = auth

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

  /** The sign-in that a response with these headers has created. */
  const begun = async (headers: Headers): Promise<SignedIn> => {
    const setCookies = headers.getSetCookie()
    const signedIn = await find(cookieOf(setCookies))
    // A change that ends all sign-ins has ended it already.
    if (signedIn === undefined)
      throw new SandlotError('unauthenticated', 'This sign-in has ended. Sign in again.')
    return { ...signedIn, setCookies }
  }

  return {
    find,
    external: makeExternalFlows({ db, auth, headersOf, begun }),
    secondFactor: makeSecondFactors({ db, auth, headersOf, begun }),
    async createUser(user) {
      try {
        const { user: made } = await api.createUser({ body: user })
        return toAccount(made, [], false)
      } catch (error) {
        throw translate(error)
      }
    },
    async signIn(credentials, from) {
      const known = await credentialOf(db, 'email', credentials.email.toLowerCase())
      return ifStillOwner(db, known, async () => {
        try {
          const answer = await api.signInEmail({
            body: credentials,
            headers: headersOf(from),
            returnHeaders: true,
          })
          if ('twoFactorRedirect' in answer.response)
            throw new SecondFactorNeeded(answer.headers.getSetCookie())
          return await begun(answer.headers)
        } catch (error) {
          throw translate(error)
        }
      })
    },
    async changePassword(cookie, { current, password }) {
      const headers = new Headers({ cookie })
      // Without refresh, since an extended cookie would be lost here.
      const asking = await api.getSession({ headers, query: { disableRefresh: true } })
      if (asking === null) throw new SandlotError('unauthenticated', SIGN_IN_FIRST)
      const known = await credentialOf(db, 'id', asking.user.id)
      if (known === undefined) throw new SandlotError('bad_request', 'This account has no password.')
      const { password: passwords } = await $context
      if (password.length < MIN_PASSWORD_CHARS || password.length > MAX_PASSWORD_CHARS)
        throw new SandlotError('bad_request', PASSWORD_LENGTH)
      if (!(await passwords.verify({ hash: known.hash, password: current })))
        throw new SandlotError('forbidden', WRONG_PASSWORD)
      const hash = await passwords.hash(password)
      const change = { userId: known.userId, hash, instead: known.hash, except: asking.session.id }
      if (!(await replacePassword(db, change))) throw new SandlotError('forbidden', WRONG_PASSWORD)
      return ifStillOwner(db, { ...known, hash }, async () => {
        try {
          return await begun((await api.renewSignIn({ headers, returnHeaders: true })).headers)
        } catch (error) {
          if (error instanceof APIError) throw new SandlotError('unauthenticated', SIGN_IN_FIRST)
          throw error
        }
      })
    },
    async setPassword(userId, password) {
      const { password: passwords } = await $context
      await replacePassword(db, { userId, hash: await passwords.hash(password) })
    },
    async checkPassword(userId, password) {
      const { password: passwords } = await $context
      const known = await credentialOf(db, 'id', userId)
      if (known === undefined || !(await passwords.verify({ hash: known.hash, password })))
        throw new SandlotError('forbidden', WRONG_PASSWORD)
    },
    tickets: {
      async put(key, value, validMs) {
        const { internalAdapter } = await $context
        // better-auth removes expired rows only when it looks for its own.
        await db
          .deleteFrom('auth_verification')
          .where('identifier', 'like', `${TICKET}%`)
          .where('expiresAt', '<', new Date().toISOString())
          .execute()
        const expiresAt = new Date(Date.now() + validMs)
        await internalAdapter.createVerificationValue({ identifier: ticketOf(key), value, expiresAt })
      },
      async take(key) {
        const { internalAdapter } = await $context
        return (await internalAdapter.consumeVerificationValue(ticketOf(key)))?.value
      },
    },
    async signOut(cookie) {
      const { headers } = await api.signOut({ headers: new Headers({ cookie }), returnHeaders: true })
      return headers.getSetCookie()
    },
  }
}

/** Hashed: read access to the database must not be enough to sign in. */
function ticketOf(key: string): string {
  return `${TICKET}${createHash('sha256').update(key).digest('hex')}`
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
 * better-auth's refusals as `SandlotError`. Its texts are safe to show; any other exception stays a
 * bug.
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

function codeOf(error: APIError): string {
  const code: unknown = error.body?.['code']
  return typeof code === 'string' ? code : ''
}
