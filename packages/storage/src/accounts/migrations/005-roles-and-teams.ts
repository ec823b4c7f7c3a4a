/** Members are called so (`user` before), there are guests, and people are in teams. */
import { sql } from 'kysely'
import type { Migration } from '../../database/database.ts'

export const rolesAndTeams: Migration = {
  async up(db) {
    await sql`update auth_user set role = 'member' where role = 'user' or role is null`.execute(db)
    await db.schema
      .createTable('team')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('name', 'text', (column) => column.notNull())
      // Lower case, so that no two differ by case alone.
      .addColumn('nameKey', 'text', (column) => column.notNull().unique())
      .addColumn('createdAt', 'bigint', (column) => column.notNull())
      .execute()
    await db.schema
      .createTable('team_member')
      .addColumn('teamId', 'text', (column) => column.notNull().references('team.id').onDelete('cascade'))
      .addColumn('userId', 'text', (column) =>
        column.notNull().references('auth_user.id').onDelete('cascade'),
      )
      .addColumn('source', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('team_member_key', ['teamId', 'userId', 'source'])
      .execute()
    await db.schema.createIndex('team_member_user').on('team_member').column('userId').execute()
  },
}
