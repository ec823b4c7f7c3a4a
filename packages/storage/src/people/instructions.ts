/** Users' own instructions to the agent: one text each. */
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Kysely } from 'kysely'
import { inTransaction } from '../audit/audit.ts'
import type { SessionsSchema } from '../tables/sessions.ts'

export interface InstructionRows {
  /** Empty when there is none. */
  get(userId: string): Promise<string>
  /** An empty text removes it. */
  put(userId: string, text: string, at: number, audit?: NewAudit): Promise<void>
}

export function storedInstructions(db: Kysely<SessionsSchema>): InstructionRows {
  return {
    async get(userId) {
      const row = await db
        .selectFrom('instructions')
        .select('text')
        .where('user_id', '=', userId)
        .executeTakeFirst()
      return row?.text ?? ''
    },
    put: (userId, text, at, audit) =>
      inTransaction(db, audit, async (trx) => {
        if (text === '') {
          await trx.deleteFrom('instructions').where('user_id', '=', userId).execute()
          return
        }
        await trx
          .insertInto('instructions')
          .values({ user_id: userId, text, updated_at: at })
          .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ text, updated_at: at }))
          .execute()
      }),
  }
}

export async function addInstructions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('instructions')
    .addColumn('user_id', 'text', (column) => column.primaryKey())
    .addColumn('text', 'text', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .execute()
}
