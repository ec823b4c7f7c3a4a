/** Queued prompts: one row each, so that their order survives a restart. */
import type { Kysely } from 'kysely'
import type { SessionsSchema } from '../tables/sessions.ts'

interface WaitingRecord {
  promptId: string
  person: string
  model: string
  /** Order of the queue. */
  joined: number
  /** The number of the person's last slot; 0: none. */
  served: number
}

export interface PromptQueueRows {
  /** In the order of arrival. */
  all(): Promise<WaitingRecord[]>
  put(record: WaitingRecord): Promise<void>
  /** Removes it, and updates the last slot of this person's other queued prompts. */
  remove(promptId: string, person: string, served: number): Promise<void>
}

export function storedPromptQueue(db: Kysely<SessionsSchema>): PromptQueueRows {
  return {
    async all() {
      const rows = await db.selectFrom('line').selectAll().orderBy('joined').execute()
      return rows.map(({ prompt_id, user_id, ...row }) => ({ promptId: prompt_id, person: user_id, ...row }))
    },
    async put({ promptId, person, model, joined, served }) {
      await db
        .insertInto('line')
        .values({ prompt_id: promptId, user_id: person, model, joined, served })
        .onConflict((conflict) => conflict.column('prompt_id').doUpdateSet({ model, joined, served }))
        .execute()
    },
    remove: (promptId, person, served) =>
      db.transaction().execute(async (trx) => {
        await trx.deleteFrom('line').where('prompt_id', '=', promptId).execute()
        await trx.updateTable('line').set({ served }).where('user_id', '=', person).execute()
      }),
  }
}

export async function addPromptQueue(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('line')
    .addColumn('prompt_id', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('joined', 'bigint', (column) => column.notNull())
    .addColumn('served', 'bigint', (column) => column.notNull())
    .execute()
}
