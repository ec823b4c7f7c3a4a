/** Users' own instructions to the agent, and the last texts of those in their workspaces. */
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Kysely } from 'kysely'
import { inTransaction } from '../audit/audit.ts'
import type { SessionsSchema } from '../tables/sessions.ts'

export interface InstructionRows {
  /** Empty when there is none. */
  get(userId: string): Promise<string>
  put(userId: string, text: string, at: number, audit?: NewAudit): Promise<void>
  /** Last texts of instruction files in the user's workspace, as JSON; empty: none. */
  files(userId: string): Promise<string>
  putFiles(userId: string, files: string, at: number): Promise<void>
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
        await trx
          .insertInto('instructions')
          .values({ user_id: userId, text, updated_at: at })
          .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ text, updated_at: at }))
          .execute()
      }),
    async files(userId) {
      const row = await db
        .selectFrom('instructions')
        .select('files')
        .where('user_id', '=', userId)
        .executeTakeFirst()
      return row?.files ?? ''
    },
    async putFiles(userId, files, at) {
      await db
        .insertInto('instructions')
        .values({ user_id: userId, text: '', updated_at: at, files })
        .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ files }))
        .execute()
    },
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

export async function addInstructionFiles({ schema }: Kysely<unknown>): Promise<void> {
  await schema.alterTable('instructions').addColumn('files', 'text').execute()
}
