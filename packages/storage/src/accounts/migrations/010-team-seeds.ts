/**
 * Teams of the agent's configuration file are adopted once. Who is in them and has no account yet
 * gets there with the account, however it is made.
 */
import { sql } from 'kysely'
import type { Migration } from '../../database/database.ts'
import { dialectOf } from '../../database/dialect.ts'

const CLAIM = `
  insert into team_member ("teamId", "userId", source)
    select "teamId", new.id, 'admin' from team_seed_member where key in (new.id, lower(new.email))
    on conflict do nothing;
  delete from team_seed_member where key in (new.id, lower(new.email));`

const ON_SQLITE = [`create trigger team_seed_claimed after insert on auth_user begin ${CLAIM} end`]
const ON_POSTGRES = [
  `create function claim_team_seed() returns trigger language plpgsql as $$ begin ${CLAIM} return null; end $$`,
  'create trigger team_seed_claimed after insert on auth_user for each row execute function claim_team_seed()',
]

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
    for (const statement of dialectOf(db) === 'sqlite' ? ON_SQLITE : ON_POSTGRES)
      await sql.raw(statement).execute(db)
  },
}
