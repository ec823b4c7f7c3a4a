/**
 * Our own keys, and not @better-auth/api-key: its newest release (1.7.5) wants better-call 1.4.0
 * and
 * @better-auth/utils 0.4.2 exactly, better-auth 1.7.25 brings others of both.
 */
import type { Migration } from '../../database/database.ts'

export const apiKeys: Migration = {
  async up(db) {
    await db.schema
      .createTable('api_key')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('userId', 'text', (column) =>
        column.notNull().references('auth_user.id').onDelete('cascade'),
      )
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('prefix', 'text', (column) => column.notNull())
      .addColumn('hash', 'text', (column) => column.notNull().unique())
      .addColumn('createdAt', 'bigint', (column) => column.notNull())
      .addColumn('lastUsedAt', 'bigint')
      .execute()
    await db.schema.createIndex('api_key_user').on('api_key').columns(['userId', 'createdAt']).execute()
  },
}
