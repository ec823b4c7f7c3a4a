/**
 * Tokens by which people who forgot their password set a new one, and accounts whose address only
 * its person has named.
 */
import type { Migration } from '../../database/database.ts'

export const passwordResets: Migration = {
  async up(db) {
    await db.schema
      .createTable('password_reset')
      .addColumn('hash', 'text', (column) => column.primaryKey())
      .addColumn('userId', 'text', (column) =>
        column.notNull().unique().references('auth_user.id').onDelete('cascade'),
      )
      .addColumn('expiresAt', 'bigint', (column) => column.notNull())
      .execute()
    await db.schema
      .createTable('unproven_address')
      .addColumn('userId', 'text', (column) =>
        column.primaryKey().references('auth_user.id').onDelete('cascade'),
      )
      .execute()
  },
}
