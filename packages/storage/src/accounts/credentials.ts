/**
 * The password of an account as checked by sign-ins, and its change. Sign-ins run at several
 * services and a check takes a while: each is checked again after it was created and before its
 * browser receives it, so that none outlives its credential.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { newId } from '@sandlot/shared/base/ids'
import type { Kysely } from 'kysely'
import { dialectOf } from '../database/dialect.ts'
import type { AccountsSchema } from '../tables/accounts.ts'
import { SecondFactorNeeded, type SignedIn } from '../tables/account-records.ts'

/** The credential of a sign-in. */
export interface Credential {
  userId: string
  /** The password's. */
  hash: string
  /** A code is required as well. */
  secondFactor: boolean
}

interface NewPassword {
  userId: string
  hash: string
  /** Only replaces this hash. Absent: any. */
  instead?: string
  /** The one sign-in that stays. */
  except?: string
}

export const WRONG_PASSWORD = 'That is not your current password.'

/** better-auth's provider id of a password. */
export const PASSWORD = 'credential'
/** Prefix of identifiers of sign-ins that wait for a code. */
const CHALLENGE = '2fa-%'

/** Undefined: unknown person, or without a password. */
export async function credentialOf(
  db: Kysely<AccountsSchema>,
  by: 'id' | 'email',
  value: string,
): Promise<Credential | undefined> {
  const row = await db
    .selectFrom('auth_user')
    .innerJoin('auth_account', 'auth_account.userId', 'auth_user.id')
    .select(['auth_user.id', 'auth_account.password', 'auth_user.twoFactorEnabled'])
    .where(`auth_user.${by}`, '=', value)
    .where('auth_account.providerId', '=', PASSWORD)
    .executeTakeFirst()
  if (row === undefined || row.password === null) return undefined
  return { userId: row.id, hash: row.password, secondFactor: row.twoFactorEnabled === 1 }
}

/**
 * Runs `begin`, and ends its sign-in if `known` has changed since. `known`: the credential read
 * before; undefined: no check. Throws `unauthenticated`.
 */
export async function ifStillOwner(
  db: Kysely<AccountsSchema>,
  known: Credential | undefined,
  begin: () => Promise<SignedIn>,
): Promise<SignedIn> {
  if (known === undefined) return begin()
  const [begun] = await Promise.allSettled([begin()])
  const isRefused = begun.status === 'rejected' && begun.reason instanceof SandlotError
  if (!isRefused && !(await holds(db, known))) {
    if (begun.status === 'fulfilled')
      await db.deleteFrom('auth_session').where('id', '=', begun.value.signInId).execute()
    if (begun.status === 'rejected' && begun.reason instanceof SecondFactorNeeded)
      await endChallenges(db, known.userId)
    throw new SandlotError('unauthenticated', 'Your account has changed just now. Sign in again.')
  }
  if (begun.status === 'rejected') throw begun.reason
  return begun.value
}

/** Waits for a change in progress. A later one ends all sign-ins, including the checked one. */
async function holds(db: Kysely<AccountsSchema>, known: Credential): Promise<boolean> {
  const found = await db
    .selectFrom('auth_account')
    .select('id')
    .where('userId', '=', known.userId)
    .where('providerId', '=', PASSWORD)
    .where('password', '=', known.hash)
    .$if(dialectOf(db) === 'postgres', (query) => query.forShare())
    .executeTakeFirst()
  if (found === undefined) return false
  // Activating it ends all other sign-ins afterwards.
  return (await credentialOf(db, 'id', known.userId))?.secondFactor === known.secondFactor
}

/** Ends the person’s sign-ins with the change. False: another one came before. */
export async function replacePassword(
  db: Kysely<AccountsSchema>,
  { userId, hash, instead, except = '' }: NewPassword,
): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const now = new Date().toISOString()
    // First: later checks of sign-ins wait for this row.
    const changed = await trx
      .updateTable('auth_account')
      .set({ password: hash, updatedAt: now })
      .where('userId', '=', userId)
      .where('providerId', '=', PASSWORD)
      .$if(instead !== undefined, (query) => query.where('password', '=', instead ?? null))
      .executeTakeFirst()
    if (changed.numUpdatedRows === 0n) {
      if (instead !== undefined) return false
      const made = { id: newId('r'), accountId: userId, providerId: PASSWORD, userId, password: hash }
      await trx
        .insertInto('auth_account')
        .values({ ...made, createdAt: now, updatedAt: now })
        .execute()
    }
    await trx.deleteFrom('auth_session').where('userId', '=', userId).where('id', '!=', except).execute()
    await endChallenges(trx, userId)
    return true
  })
}

async function endChallenges(db: Kysely<AccountsSchema>, userId: string): Promise<void> {
  await db
    .deleteFrom('auth_verification')
    .where('value', '=', userId)
    .where('identifier', 'like', CHALLENGE)
    .execute()
}
