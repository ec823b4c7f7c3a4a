/** How sign-in knows people, as it told the agent: for settings that name somebody by e-mail address. */
import type { Kysely } from 'kysely'
import type { SessionsSchema } from './schema.ts'

export interface PeopleTable {
  user_id: string
  email: string
}

export interface PeopleRows {
  /** Addresses by user id. */
  all(): Promise<ReadonlyMap<string, string>>
  /** In place of an earlier one. */
  put(userId: string, email: string): Promise<void>
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
