/**
 * Shared state of several services on one PostgreSQL: ended access of users, and presence on pages.
 * With a file there is one service, and nothing is stored.
 */
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { addChanges, changing } from '../database/changes.ts'
import { dialectOf } from '../database/dialect.ts'
import { isFirstPrint } from '../database/counters.ts'
import type { AccountsSchema } from '../tables/accounts.ts'

export interface ServicesStore {
  /** See `isFirstPrint`; true for a file, whose keys are next to it. */
  hasKey(name: string, print: number): Promise<boolean>
  /** To all services, including this one. */
  publish(what: string, id: string): Promise<void>
  /** `looking`: users who see a page at this service now; `away`: users who did until now. */
  putPresence(service: string, looking: readonly string[], away: readonly string[]): Promise<void>
  /** At any service. `lastLooked`: 0 if more than a day ago. */
  presenceOf(userId: string): Promise<{ isLooking: boolean; lastLooked: number }>
}

/** Presence expires unless its service repeats it. */
const LOOKING_MS = 15_000
const RETAINED_MS = 86_400_000

const NOW = sql<number>`cast(floor(extract(epoch from clock_timestamp()) * 1000) as bigint)`

export function makeServices(db: Kysely<AccountsSchema>): ServicesStore {
  const isFile = dialectOf(db) === 'sqlite'
  return {
    hasKey: async (name, print) => isFile || isFirstPrint(db, name, print),
    publish: (what, id) => changing(db, { what, id }, () => Promise.resolve()),
    async putPresence(service, looking, away) {
      const row = (userId: string, isLooking: number) => ({ userId, service, looking: isLooking, at: NOW })
      const rows = [...looking.map((id) => row(id, 1)), ...away.map((id) => row(id, 0))]
      if (isFile || rows.length === 0) return
      await db
        .insertInto('presence')
        .values(rows)
        .onConflict((conflict) =>
          conflict
            .columns(['userId', 'service'])
            .doUpdateSet((now) => ({ looking: now.ref('excluded.looking'), at: now.ref('excluded.at') })),
        )
        .execute()
      await db.deleteFrom('presence').where('at', '<', before(RETAINED_MS)).execute()
    },
    async presenceOf(userId) {
      if (isFile) return { isLooking: false, lastLooked: 0 }
      const rows = await db
        .selectFrom('presence')
        .select(['at', 'looking'])
        .select(sql<boolean>`at >= ${before(LOOKING_MS)}`.as('isFresh'))
        .where('userId', '=', userId)
        .execute()
      return {
        isLooking: rows.some(({ looking, isFresh }) => looking === 1 && isFresh),
        lastLooked: Math.max(0, ...rows.map(({ at }) => at)),
      }
    },
  }
}

function before(ms: number): RawBuilder<number> {
  return sql<number>`${NOW} - ${sql.lit(ms)}`
}

export async function addServices(db: Kysely<unknown>): Promise<void> {
  await addChanges(db)
  await db.schema
    .createTable('presence')
    .addColumn('userId', 'text', (column) => column.notNull())
    .addColumn('service', 'text', (column) => column.notNull())
    .addColumn('looking', 'integer', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('presence_by_user', ['userId', 'service'])
    .execute()
}
