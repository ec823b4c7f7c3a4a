/**
 * People who were removed: what is still to be done about it, and whose the files are that were
 * kept.
 */
import type { Migration } from '../../database/database.ts'

export const removals: Migration = {
  async up(db) {
    await db.schema
      .createTable('removal')
      .addColumn('userId', 'text', (column) => column.primaryKey())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('email', 'text', (column) => column.notNull())
      .addColumn('data', 'text', (column) => column.notNull())
      .addColumn('removedAt', 'bigint', (column) => column.notNull())
      .addColumn('done', 'integer', (column) => column.notNull())
      .execute()
  },
}
