/** Rows of `auth_user` and `team_member` as accounts. */
import { type Account, account } from '@sandlot/shared/account/api'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { ChangePersonRequest } from '@sandlot/shared/account/teams-api'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Kysely } from 'kysely'
import { refuseLastAdministrator } from './removals.ts'
import { appendAudit } from '../audit/audit.ts'
import type { AccountsSchema } from '../tables/accounts.ts'

interface UserRow {
  id: string
  name: string
  email: string
  role?: string | null | undefined
}

export function toAccount(
  { id, name, email, role }: UserRow,
  teams: readonly string[],
  unproven: boolean,
): Account {
  return account.parse({
    id,
    name,
    email,
    role: role ?? 'member',
    teams,
    ...(unproven && { unproven: true }),
  })
}

/** The account of a row of `auth_user`. */
export async function accountOf(db: Kysely<AccountsSchema>, user: UserRow): Promise<Account> {
  const rows = await db
    .selectFrom('team_member')
    .select('teamId')
    .distinct()
    .where('userId', '=', user.id)
    .orderBy('teamId')
    .execute()
  return toAccount(
    user,
    rows.map(({ teamId }) => teamId),
    await isUnproven(db, user.id),
  )
}

/** True: the address of this account is unconfirmed. */
export async function isUnproven(db: Kysely<AccountsSchema>, userId: string): Promise<boolean> {
  const found = await db
    .selectFrom('unproven_address')
    .select('userId')
    .where('userId', '=', userId)
    .executeTakeFirst()
  return found !== undefined
}

/** All accounts, by name. */
export async function listUsers(db: Kysely<AccountsSchema>): Promise<Account[]> {
  const [users, members, unproven] = await Promise.all([
    db
      .selectFrom('auth_user')
      .select(['id', 'name', 'email', 'role'])
      .orderBy('name')
      .orderBy('id')
      .execute(),
    db.selectFrom('team_member').select(['teamId', 'userId']).distinct().orderBy('teamId').execute(),
    db.selectFrom('unproven_address').select('userId').execute(),
  ])
  const ofUnproven = new Set(unproven.map(({ userId }) => userId))
  const teams = Map.groupBy(members, ({ userId }) => userId)
  return users.map((user) =>
    toAccount(
      user,
      (teams.get(user.id) ?? []).map(({ teamId }) => teamId),
      ofUnproven.has(user.id),
    ),
  )
}

export async function changePerson(
  db: Kysely<AccountsSchema>,
  userId: string,
  { was, ...change }: ChangePersonRequest,
  audit?: NewAudit,
): Promise<Account> {
  return db.transaction().execute(async (trx) => {
    const user = await trx
      .selectFrom('auth_user')
      .select(['id', 'name', 'email', 'role'])
      .where('id', '=', userId)
      .executeTakeFirst()
    if (user === undefined) throw new SandlotError('not_found', 'There is no such person.')
    const before = await accountOf(trx, user)
    if ((was?.role ?? before.role) !== before.role || (was?.name ?? before.name) !== before.name)
      throw new SandlotError(
        'conflict',
        `Another administrator has changed this account meanwhile: it is ${before.name}’s, with the role ${before.role}.`,
      )
    const after = { ...before, ...change }
    if (before.role === 'admin' && after.role !== 'admin') await refuseLastAdministrator(trx)
    const { name, role } = after
    await trx.updateTable('auth_user').set({ name, role }).where('id', '=', userId).execute()
    if (audit !== undefined) {
      const had = { name: before.name, role: before.role }
      await appendAudit(trx, { ...audit, whom: { id: userId, name }, before: had, after: { name, role } })
    }
    return after
  })
}
