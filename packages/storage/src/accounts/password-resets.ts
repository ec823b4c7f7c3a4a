/** Password resets by a mailed link. */
import { createHash } from 'node:crypto'
import type { Account } from '@sandlot/shared/account/api'
import { SandlotError } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import type { Kysely } from 'kysely'
import { listUsers } from './account-rows.ts'
import type { AccountsSchema } from '../tables/accounts.ts'

const TOKEN_CHARS = 40
const VALID_MS = 60 * 60_000

export interface PasswordResetsStore {
  /**
   * A token for the account of this address, replacing an earlier one; valid for an hour.
   * Undefined: unknown address, or without a password.
   */
  beginReset(email: string): Promise<{ account: Account; token: string } | undefined>
  /**
   * Sets the password and ends all sign-ins. Throws `forbidden` for a used, expired or unknown
   * token.
   */
  finishReset(token: string, password: string): Promise<Account>
}

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')

export function makePasswordResets(
  db: Kysely<AccountsSchema>,
  accounts: {
    hasPassword: (userId: string) => Promise<boolean>
    setPassword: (userId: string, password: string) => Promise<void>
  },
): PasswordResetsStore {
  return {
    async beginReset(email) {
      const account = (await listUsers(db)).find((user) => user.email === email.trim().toLowerCase())
      if (account === undefined || !(await accounts.hasPassword(account.id))) return undefined
      const token = randomText(TOKEN_CHARS)
      const row = { hash: hashOf(token), userId: account.id, expiresAt: Date.now() + VALID_MS }
      await db
        .insertInto('password_reset')
        .values(row)
        .onConflict((conflict) => conflict.column('userId').doUpdateSet(row))
        .execute()
      return { account, token }
    },
    async finishReset(token, password) {
      // Taken first: of two concurrent calls one gets it.
      const taken = await db
        .deleteFrom('password_reset')
        .where('hash', '=', hashOf(token))
        .returningAll()
        .executeTakeFirst()
      const account =
        taken === undefined || taken.expiresAt <= Date.now()
          ? undefined
          : (await listUsers(db)).find(({ id }) => id === taken.userId)
      if (taken === undefined || account === undefined)
        throw new SandlotError('forbidden', 'This link was used or has expired. Ask for another one.')
      try {
        await accounts.setPassword(account.id, password)
      } catch (error) {
        // Nothing has changed: the link stays usable, unless a newer one was sent.
        await db
          .insertInto('password_reset')
          .values(taken)
          .onConflict((conflict) => conflict.doNothing())
          .execute()
        throw error
      }
      return account
    },
  }
}
