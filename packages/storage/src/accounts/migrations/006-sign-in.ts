/** By which provider a sign-in began and when it was last used, and roles that come from groups. */
import type { Migration } from '../../database/database.ts'

export const signIn: Migration = {
  async up(db) {
    await db.schema
      .createTable('sign_in')
      .addColumn('id', 'text', (column) =>
        column.primaryKey().references('auth_session.id').onDelete('cascade'),
      )
      // Absent: by password.
      .addColumn('provider', 'text')
      .addColumn('lastUsedAt', 'bigint', (column) => column.notNull())
      .execute()
    await db.schema
      .createTable('group_role')
      .addColumn('userId', 'text', (column) =>
        column.primaryKey().references('auth_user.id').onDelete('cascade'),
      )
      // The role without any group, and that which groups gave in its place.
      .addColumn('own', 'text', (column) => column.notNull())
      .addColumn('given', 'text', (column) => column.notNull())
      .execute()
  },
}
