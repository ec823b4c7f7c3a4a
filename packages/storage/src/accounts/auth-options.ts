/** Options of better-auth. */
import { MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from '@sandlot/shared/account/api'
import type { Auth, BetterAuthPlugin } from 'better-auth'
import { createAuthEndpoint, sensitiveSessionMiddleware } from 'better-auth/api'
import { setSessionCookie } from 'better-auth/cookies'
import { admin } from 'better-auth/plugins/admin'
import { adminAc, userAc } from 'better-auth/plugins/admin/access'
import { twoFactor } from 'better-auth/plugins/two-factor'
import type { Kysely } from 'kysely'
import { PasswordHasher } from './auth-passwords.ts'
import type { AccountsSchema } from '../tables/accounts.ts'

export interface AuthOptions {
  /** Signs the cookies. At least 32 random characters. */
  secret: string
  /** The public address; `https:` makes the cookies `Secure`. */
  publicUrl: string
}

/** A week; extended at most once a day. */
const SIGN_IN_SECONDS = 7 * 24 * 60 * 60
const PROLONG_AFTER_SECONDS = 24 * 60 * 60
/** Set by us from the connection, never by a client: better-auth's headers are made here. */
export const IP_HEADER = 'x-sandlot-client-ip'

/** Endpoints that better-auth lacks. */
const ours = {
  id: 'sandlot',
  endpoints: {
    /** Replaces the sign-in of the request. */
    renewSignIn: createAuthEndpoint(
      '/sandlot/renew-sign-in',
      { method: 'POST', use: [sensitiveSessionMiddleware] },
      async (ctx) => {
        const { internalAdapter } = ctx.context
        const { user, session: before } = ctx.context.session
        const session = await internalAdapter.createSession(user.id)
        await setSessionCookie(ctx, { session, user })
        await internalAdapter.deleteSession(before.token)
      },
    ),
  },
} satisfies BetterAuthPlugin

export function authOptions(db: Kysely<AccountsSchema>, options: AuthOptions) {
  const passwords = new PasswordHasher()
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
    account: {
      modelName: 'auth_account',
      // `external.ts` decides on links; better-auth must not refuse them.
      accountLinking: { requireLocalEmailVerified: false, allowDifferentEmails: true },
    },
    verification: { modelName: 'auth_verification' },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: MIN_PASSWORD_CHARS,
      maxPasswordLength: MAX_PASSWORD_CHARS,
      password: {
        hash: (password: string) => passwords.hash(password),
        verify: (given: { hash: string; password: string }) => passwords.verify(given),
      },
    },
    // The service limits by address and by account; better-auth's own limits count only by address.
    rateLimit: { enabled: false },
    advanced: {
      cookiePrefix: 'sandlot',
      useSecureCookies: options.publicUrl.startsWith('https:'),
      ipAddress: { ipAddressHeaders: [IP_HEADER] },
    },
    plugins: [
      ours,
      twoFactor({ issuer: 'Sandlot', schema: { twoFactor: { modelName: 'auth_two_factor' } } }),
      admin({
        defaultRole: 'member',
        adminRoles: ['admin'],
        roles: { admin: adminAc, member: userAc, guest: userAc },
      }),
    ],
  }
}

export type BetterAuth = Auth<ReturnType<typeof authOptions>>
