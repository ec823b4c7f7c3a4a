/** How the alerts to an operator stand, so that a restart says nothing twice. */
import type { Kysely } from 'kysely'
import type { Migration } from '../database/database.ts'
import type { AccountsSchema } from '../tables/accounts.ts'

export interface AlertsTables {
  alert_state: { kind: string; state: string }
}

export interface AlertsStore {
  /** By kind, as they were put. */
  all(): Promise<ReadonlyMap<string, string>>
  put(kind: string, state: string): Promise<void>
}

export function makeAlerts(db: Kysely<AccountsSchema>): AlertsStore {
  return {
    async all() {
      const rows = await db.selectFrom('alert_state').selectAll().execute()
      return new Map(rows.map(({ kind, state }) => [kind, state]))
    },
    async put(kind, state) {
      await db
        .insertInto('alert_state')
        .values({ kind, state })
        .onConflict((conflict) => conflict.column('kind').doUpdateSet({ state }))
        .execute()
    },
  }
}

export const alertsTables: Migration = {
  async up({ schema }) {
    await schema
      .createTable('alert_state')
      .addColumn('kind', 'text', (column) => column.primaryKey())
      .addColumn('state', 'text', (column) => column.notNull())
      .execute()
  },
}
