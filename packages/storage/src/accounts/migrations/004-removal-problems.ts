/** What keeps a removal from being done, in words for administrators. */
import type { Migration } from '../../database/database.ts'

export const removalProblems: Migration = {
  async up(db) {
    await db.schema.alterTable('removal').addColumn('problem', 'text').execute()
  },
}
