/** State of the operator's alerts, so that a restart repeats none. */
import type { Kysely } from 'kysely'
import type { AccountsSchema } from '../tables/accounts.ts'

export interface AlertsStore {
  /** By kind, unchanged from `put`. */
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

export async function addAlerts({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('alert_state')
    .addColumn('kind', 'text', (column) => column.primaryKey())
    .addColumn('state', 'text', (column) => column.notNull())
    .execute()
}
