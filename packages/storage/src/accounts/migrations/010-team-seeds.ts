/**
 * Teams of the agent's configuration file are adopted once. Who is in them and has no account yet
 * gets there with the account, however it is made.
 */
import { sql } from 'kysely'
import type { Migration } from '../../database/database.ts'

export const teamSeeds: Migration = {
  async up(db) {
    await db.schema
      .createTable('team_seed')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .execute()
    await db.schema
      .createTable('team_seed_member')
      .addColumn('teamId', 'text', (column) => column.notNull().references('team.id').onDelete('cascade'))
      // A user id, or an address in lower case.
      .addColumn('key', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('team_seed_member_key', ['teamId', 'key'])
      .execute()
    await sql`
      create trigger team_seed_claimed after insert on auth_user begin
        insert or ignore into team_member (teamId, userId, source)
          select teamId, new.id, 'admin' from team_seed_member where key in (new.id, lower(new.email));
        delete from team_seed_member where key in (new.id, lower(new.email));
      end
    `.execute(db)
  },
}
