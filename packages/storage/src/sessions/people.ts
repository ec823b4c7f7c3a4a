/**
 * E-mail addresses of people by id, as the service sent them, for settings that name people by
 * address; and removed people.
 */
import type { Kysely } from 'kysely'
import type { SessionsSchema } from './schema.ts'

export interface PeopleTable {
  user_id: string
  email: string
}

export interface RemovedPeopleTable {
  user_id: string
  /** Epoch milliseconds. */
  removed_at: number
}

export interface PeopleRows {
  /** Addresses by user id. */
  all(): Promise<ReadonlyMap<string, string>>
  /** In place of an earlier one. */
  put(userId: string, email: string): Promise<void>
  /** Ids of those who were removed. They stay: no id is given twice. */
  removed(): Promise<ReadonlySet<string>>
  /**
   * In one transaction: this person counts as removed, and their address, secrets, rules and
   * instructions go. Their sessions stay, and what they have spent. To be repeated when something
   * may have been written meanwhile.
   */
  remove(userId: string, at: number): Promise<void>
}

export function storedPeople(db: Kysely<SessionsSchema>): PeopleRows {
  return {
    async all() {
      const rows = await db.selectFrom('people').selectAll().execute()
      return new Map(rows.map((row) => [row.user_id, row.email]))
    },
    async put(userId, email) {
      await db
        .insertInto('people')
        .values({ user_id: userId, email })
        .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ email }))
        .execute()
    },
    async removed() {
      const rows = await db.selectFrom('removed_people').select('user_id').execute()
      return new Set(rows.map((row) => row.user_id))
    },
    remove: (userId, at) =>
      db.transaction().execute(async (trx) => {
        await trx
          .insertInto('removed_people')
          .values({ user_id: userId, removed_at: at })
          .onConflict((conflict) => conflict.column('user_id').doNothing())
          .execute()
        for (const table of ['people', 'secrets', 'rules', 'instructions', 'notices'] as const)
          await trx.deleteFrom(table).where('user_id', '=', userId).execute()
      }),
  }
}

/** A migration. */
export async function addPeople({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('people')
    .addColumn('user_id', 'text', (column) => column.primaryKey())
    .addColumn('email', 'text', (column) => column.notNull())
    .execute()
}

/** A migration. */
export async function addRemovedPeople({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('removed_people')
    .addColumn('user_id', 'text', (column) => column.primaryKey())
    .addColumn('removed_at', 'bigint', (column) => column.notNull())
    .execute()
}
