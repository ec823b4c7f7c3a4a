/**
 * Removal of a person from sign-in: one transaction ends the account, its sign-ins and API keys,
 * and records the remaining work elsewhere, which survives restarts until it is done.
 */
import type { Removal, RemovedData } from '@sandlot/shared/account/api'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Kysely, Selectable, Transaction } from 'kysely'
import { appendAudit } from '../audit/audit.ts'
import type { AccountsSchema } from '../tables/accounts.ts'

const MAX_PROBLEM_CHARS = 1_000

export async function removeUser(
  db: Kysely<AccountsSchema>,
  userId: string,
  data: RemovedData,
  audit?: NewAudit,
): Promise<Removal> {
  return db.transaction().execute(async (trx) => {
    const user = await trx
      .selectFrom('auth_user')
      .select(['id', 'name', 'email', 'role'])
      .where('id', '=', userId)
      .executeTakeFirst()
    if (user === undefined) return removedBefore(trx, userId, data)
    if (user.role === 'admin') await refuseLastAdministrator(trx)
    const { name, email } = user
    const row = { userId, name, email, data, removedAt: Date.now(), done: 0, problem: null }
    await trx.insertInto('removal').values(row).execute()
    if (audit !== undefined)
      await appendAudit(trx, { ...audit, whom: { id: userId, name: `${name} <${email}>` }, after: { data } })
    await trx.deleteFrom('auth_user').where('id', '=', userId).execute()
    return toRemoval(row)
  })
}

/**
 * Retained data may be purged later. Throws `conflict` for retaining data that is being purged:
 * some may be deleted.
 */
async function removedBefore(
  trx: Transaction<AccountsSchema>,
  userId: string,
  data: RemovedData,
): Promise<Removal> {
  const before = await trx.selectFrom('removal').selectAll().where('userId', '=', userId).executeTakeFirst()
  if (before === undefined) throw new SandlotError('not_found', 'There is no such person.')
  if (data === before.data) return toRemoval(before)
  if (data === 'keep')
    throw new SandlotError(
      'conflict',
      `The files and chats of ${before.name} are being deleted already, which cannot be taken back.`,
    )
  const changed = { data, done: 0, problem: null }
  await trx.updateTable('removal').set(changed).where('userId', '=', userId).execute()
  return toRemoval({ ...before, ...changed })
}

/** Throws `conflict` while there is only one administrator. */
export async function refuseLastAdministrator(trx: Transaction<AccountsSchema>): Promise<void> {
  const admins = await trx.selectFrom('auth_user').select('id').where('role', '=', 'admin').limit(2).execute()
  if (admins.length < 2)
    throw new SandlotError('conflict', 'This is the last administrator. Add another one first.')
}

export async function listRemovals(db: Kysely<AccountsSchema>): Promise<Removal[]> {
  const rows = await db.selectFrom('removal').selectAll().orderBy('removedAt', 'desc').execute()
  return rows.map(toRemoval)
}

/** All work is done, unless more was requested since. */
export async function removalDone(
  db: Kysely<AccountsSchema>,
  { id, data }: Pick<Removal, 'id' | 'data'>,
): Promise<void> {
  if (data === 'purge') await db.deleteFrom('removal').where('userId', '=', id).execute()
  else
    await db
      .updateTable('removal')
      .set({ done: 1, problem: null })
      .where('userId', '=', id)
      .where('data', '=', data)
      .execute()
}

/**
 * The reason that it is not done yet. Ignored if it is done, or something else was requested since.
 */
export async function removalFailed(
  db: Kysely<AccountsSchema>,
  { id, data }: Pick<Removal, 'id' | 'data'>,
  problem: string,
): Promise<void> {
  await db
    .updateTable('removal')
    .set({ problem: problem.slice(0, MAX_PROBLEM_CHARS) })
    .where('userId', '=', id)
    .where('data', '=', data)
    .where('done', '=', 0)
    .execute()
}

function toRemoval({ userId, done, ...row }: Selectable<AccountsSchema['removal']>): Removal {
  return { ...row, id: userId, done: done === 1 }
}
