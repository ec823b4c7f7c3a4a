/** Opens the accounts for their one writing process and returns an `AccountsStore`. */
import type { Account, Removal } from '@sandlot/shared/account/api'
import { SandlotError } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import type { Team } from '@sandlot/shared/account/teams-api'
import { type Kysely, sql } from 'kysely'
import { auditReads, storedAudit } from '../audit/audit.ts'
import type { ChainState } from '../audit/chain.ts'
import { openStore, openStoreReader } from '../database/open.ts'
import { dialectOf, isPostgres } from '../database/dialect.ts'
import type { OpenDatabase } from '../database/database.ts'
import { waitForLock } from '../database/lock.ts'
import { toAccountUserError } from '../plain-words.ts'
import type { Health } from '../database/store-health.ts'
import { withTypedFailures } from '../database/typed-failures.ts'
import { type Auth, makeAuth } from './auth.ts'
import type { AuthOptions } from './auth-options.ts'
import { createKeyedLock } from '@sandlot/shared/async/keyed-lock'
import { changePerson, listUsers } from './account-rows.ts'
import { makeExternal } from './external.ts'
import { makeInvitations } from './invitations.ts'
import { makePasswordResets } from './password-resets.ts'
import { storedKeys } from './keys.ts'
import { accountsMigrations } from './migrations.ts'
import { listRemovals, removalDone, removalFailed, removeUser } from './removals.ts'
import type { AccountsSchema } from '../tables/accounts.ts'
import type { AccountsStore, UserRows } from './store.ts'
import { makeAlerts } from './alerts.ts'
import { makeNotifications } from './notifications.ts'
import { makeServices } from './services.ts'
import { makeSignIns } from './sign-ins.ts'
import { makeTeams, teamsWith } from './teams.ts'
import { storedUploads } from './uploads.ts'

/** Random letters and digits: unguessable, and still possible to type. */
const NEW_PASSWORD_CHARS = 20

interface AccountsOptions extends AuthOptions {
  /** Milliseconds to wait for another process that has them open. Default 10,000. */
  waitMs?: number
}

/**
 * `where`: path of a file, or address of PostgreSQL. Throws `StorageError` like `openStore`; for a
 * file `locked` also while another process has it open.
 */
export async function openAccounts(where: string, options: AccountsOptions): Promise<AccountsStore> {
  const lock = isPostgres(where) ? undefined : await waitForLock(`${where}.writing`, options.waitMs ?? 10_000)
  let opened: OpenDatabase<AccountsSchema> | undefined
  const close = async (): Promise<void> => {
    try {
      await opened?.close()
    } finally {
      lock?.release()
    }
  }
  try {
    opened = await openStore<AccountsSchema>(where, 'accounts', accountsMigrations)
    const { db, health } = opened
    const auth = makeAuth(db, options)
    const signIns = makeSignIns(db)
    const external = makeExternal(db, auth.external)
    const resets = makePasswordResets(db, {
      hasPassword: (userId) => external.hasPassword(userId),
      setPassword: (userId, password) => auth.setPassword(userId, password),
    })
    const teams = makeTeams(db)
    return withTypedFailures(
      health,
      {
        users: storedUsers(db, auth),
        removals: {
          list: () => listRemovals(db),
          done: (removal) => removalDone(db, removal),
          failed: (removal, problem) => removalFailed(db, removal, problem),
        },
        passwords: {
          ...resets,
          reset: (userId) => resetPassword(db, auth, userId),
          change: (...args) => auth.changePassword(...args),
          check: (...args) => auth.checkPassword(...args),
        },
        signIns: {
          ...signIns,
          signIn: (...args) => auth.signIn(...args),
          async signOut(cookie) {
            const signedIn = await auth.find(cookie)
            return { signInId: signedIn?.signInId, setCookies: await auth.signOut(cookie) }
          },
          async find(cookie) {
            const found = await auth.find(cookie)
            if (found !== undefined) await signIns.touch(found.signInId)
            return found
          },
        },
        secondFactor: auth.secondFactor,
        external,
        keys: storedKeys(db),
        invitations: makeInvitations(db, (user) => auth.createUser(user), teams),
        teams,
        notifications: makeNotifications(db),
        alerts: makeAlerts(db),
        audit: storedAudit(db, 'service'),
        services: { ...makeServices(db), tickets: auth.tickets, uploads: storedUploads(db) },
        ping: () => ping(db, health),
        close,
      },
      toAccountUserError,
    )
  } catch (error) {
    await close()
    throw error
  }
}

function storedUsers(db: Kysely<AccountsSchema>, auth: Auth): UserRows {
  const hasAny = async (): Promise<boolean> =>
    (await db.selectFrom('auth_user').select('id').limit(1).executeTakeFirst()) !== undefined
  /** Set-ups are serialised: hashing a password takes longer than the race between two of them. */
  const lock = createKeyedLock()
  return {
    hasAny,
    create: (user) => auth.createUser(user),
    createFirstAdministrator(user) {
      return lock.run('first', () =>
        aloneOfAll(db, async () => {
          if (await hasAny()) throw new SandlotError('conflict', 'This Sandlot has an administrator already.')
          return auth.createUser({ ...user, role: 'admin' })
        }),
      )
    },
    list: () => listUsers(db),
    change: (...args) => changePerson(db, ...args),
    remove: (...args) => removeUser(db, ...args),
  }
}

async function resetPassword(db: Kysely<AccountsSchema>, auth: Auth, userId: string): Promise<string> {
  const found = await db.selectFrom('auth_user').select('id').where('id', '=', userId).executeTakeFirst()
  if (found === undefined) throw new SandlotError('not_found', 'There is no such person.')
  const password = randomText(NEW_PASSWORD_CHARS)
  await auth.setPassword(userId, password)
  return password
}

/** Serialised across all services; not as a transaction, since better-auth has its own. */
async function aloneOfAll<T>(db: Kysely<AccountsSchema>, work: () => Promise<T>): Promise<T> {
  if (dialectOf(db) === 'sqlite') return work()
  return db.connection().execute(async (held) => {
    await sql`select pg_advisory_lock(hashtext('sandlot first administrator'))`.execute(held)
    try {
      return await work()
    } finally {
      await sql`select pg_advisory_unlock(hashtext('sandlot first administrator'))`.execute(held)
    }
  })
}

/** Throws `StorageError` when they cannot be read or written. */
async function ping(db: Kysely<AccountsSchema>, health: Health): Promise<void> {
  await db.selectFrom('auth_user').select('id').limit(1).execute()
  const problem = await health.problem()
  if (problem !== undefined) throw problem
}

/** Reads from another process than the writer. Throws `StorageError` like `openStoreReader`. */
export async function readAccounts(
  where: string,
): Promise<{ users: Account[]; teams: Team[]; removed: Removal[] }> {
  const { db, close } = await openStoreReader<AccountsSchema>(where, 'accounts', accountsMigrations, {
    waitMs: 0,
  })
  try {
    return { users: await listUsers(db), teams: await teamsWith(db), removed: await listRemovals(db) }
  } finally {
    await close()
  }
}

/** Checks every line of the audit log. Throws like `readAccounts`. */
export async function readAccountsAudit(where: string): Promise<ChainState> {
  const { db, close } = await openStoreReader<AccountsSchema>(where, 'accounts', accountsMigrations, {
    waitMs: 0,
  })
  try {
    return await auditReads(db, 'service').check()
  } finally {
    await close()
  }
}
