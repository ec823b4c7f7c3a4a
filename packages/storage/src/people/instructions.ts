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
  /** Replaces them by `change` of them. Changes of one user at once follow each other. */
  changeFiles(userId: string, at: number, change: (files: string) => string): Promise<void>
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
    changeFiles: (userId, at, change) =>
      inTransaction(db, undefined, async (trx) => {
        // The update of an existing row locks it until the end of the transaction.
        const { files } = await trx
          .insertInto('instructions')
          .values({ user_id: userId, text: '', updated_at: at })
          .onConflict((conflict) =>
            conflict.column('user_id').doUpdateSet((row) => ({ files: row.ref('instructions.files') })),
          )
          .returning('files')
          .executeTakeFirstOrThrow()
        await trx
          .updateTable('instructions')
          .set({ files: change(files ?? '') })
          .where('user_id', '=', userId)
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

export async function addInstructionFiles({ schema }: Kysely<unknown>): Promise<void> {
  await schema.alterTable('instructions').addColumn('files', 'text').execute()
}
