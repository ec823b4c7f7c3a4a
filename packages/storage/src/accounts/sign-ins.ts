/** A person's sign-ins: their origins, and ending them. */
import type { Kysely } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { AccountsSchema } from '../tables/accounts.ts'

/** Without it, a sign-in in steady use would write on every request. */
const LAST_USED_STEP_MS = 60_000
const MAX_REMEMBERED = 10_000

interface SignInRow {
  id: string
  ip: string | null
  userAgent: string | null
  /** Key of the provider; null: by password. */
  provider: string | null
  since: number
  lastUsedAt: number
}

export interface SignInsStore {
  /** Last used first. */
  list(userId: string): Promise<SignInRow[]>
  /** False: not a sign-in of this person. */
  end(userId: string, id: string): Promise<boolean>
  /** All except `except`. */
  endOthers(userId: string, except: string): Promise<void>
  /** It is in use now. */
  touch(id: string): Promise<void>
}

export function makeSignIns(db: Kysely<AccountsSchema>): SignInsStore {
  /** Time of the last write, by id. */
  const touched = new LRUCache<string, number>({ max: MAX_REMEMBERED })
  return {
    async list(userId) {
      const rows = await db
        .selectFrom('auth_session')
        .leftJoin('sign_in', 'sign_in.id', 'auth_session.id')
        .select(['auth_session.id', 'auth_session.ipAddress as ip', 'auth_session.userAgent'])
        .select(['auth_session.createdAt', 'auth_session.expiresAt'])
        .select(['sign_in.provider', 'sign_in.lastUsedAt'])
        .where('auth_session.userId', '=', userId)
        .execute()
      return rows
        .filter(({ expiresAt }) => Date.parse(expiresAt) > Date.now())
        .map(({ id, ip, userAgent, provider, createdAt, lastUsedAt }) => {
          const since = Date.parse(createdAt)
          return { id, ip, userAgent, provider, since, lastUsedAt: lastUsedAt ?? since }
        })
        .toSorted((a, b) => b.lastUsedAt - a.lastUsedAt)
    },
    async end(userId, id) {
      const { numDeletedRows } = await db
        .deleteFrom('auth_session')
        .where('userId', '=', userId)
        .where('id', '=', id)
        .executeTakeFirst()
      return numDeletedRows > 0n
    },
    async endOthers(userId, except) {
      await db.deleteFrom('auth_session').where('userId', '=', userId).where('id', '!=', except).execute()
    },
    async touch(id) {
      const now = Date.now()
      if (now - (touched.get(id) ?? 0) < LAST_USED_STEP_MS) return
      touched.set(id, now)
      // It may have ended since it was found.
      await db
        .insertInto('sign_in')
        .columns(['id', 'lastUsedAt'])
        .expression(
          db
            .selectFrom('auth_session')
            .select((row) => ['id', row.lit(now).as('lastUsedAt')])
            .where('id', '=', id),
        )
        .onConflict((conflict) => conflict.column('id').doUpdateSet({ lastUsedAt: now }))
        .execute()
    },
  }
}
