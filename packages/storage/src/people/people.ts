/**
 * Known people by id, as reported by the service: address, role and teams, for prompts that are
 * resumed before any request; and removed people.
 */
import { idList } from '@sandlot/shared/account/agent-settings'
import { type Role, role } from '@sandlot/shared/account/role'
import type { Kysely } from 'kysely'
import { inChange } from '../audit/audit.ts'
import { changing } from '../database/changes.ts'
import type { GroupCommit } from '../database/group-commit.ts'
import { purgePerson } from '../retention/purge.ts'
import type { SessionsSchema } from '../tables/sessions.ts'

export interface KnownPerson {
  /** In lower case. Undefined: not known. */
  email?: string | undefined
  role?: Role | undefined
  /** Ids. */
  teams: readonly string[]
}

export interface PeopleRows {
  /** By user id. */
  all(): Promise<ReadonlyMap<string, KnownPerson>>
  /** Undefined: not known. */
  get(userId: string): Promise<KnownPerson | undefined>
  /** Replaces an earlier one. */
  put(userId: string, person: KnownPerson): Promise<void>
  /** Ids of removed people. They are permanent: ids are never reused. */
  removed(): Promise<ReadonlySet<string>>
  /**
   * In one transaction: marks the person as removed, and deletes their address, secrets, rules,
   * instructions and settings. Their sessions and usage stay. Repeat it if writes may have happened
   * since.
   */
  remove(userId: string, at: number): Promise<void>
  /** Deletes the remaining data, after their sessions. Idempotent. */
  purge(userId: string): Promise<void>
}

export function storedPeople(db: Kysely<SessionsSchema>, commits: GroupCommit<SessionsSchema>): PeopleRows {
  return {
    async all() {
      const rows = await db.selectFrom('people').selectAll().execute()
      return new Map(rows.map((row) => [row.user_id, toPerson(row)]))
    },
    async get(userId) {
      const row = await db.selectFrom('people').selectAll().where('user_id', '=', userId).executeTakeFirst()
      return row && toPerson(row)
    },
    async put(userId, { email = '', role: held = null, teams }) {
      const row = { email, role: held, teams: JSON.stringify(teams) }
      await changing(db, { what: 'people', id: userId }, (trx) =>
        trx
          .insertInto('people')
          .values({ user_id: userId, ...row })
          .onConflict((conflict) => conflict.column('user_id').doUpdateSet(row))
          .execute(),
      )
    },
    async removed() {
      const rows = await db.selectFrom('removed_people').select('user_id').execute()
      return new Set(rows.map((row) => row.user_id))
    },
    purge: (userId) => purgePerson(db, commits, userId),
    remove: (userId, at) =>
      inChange(db, { what: 'removed', id: userId }, undefined, async (trx) => {
        await trx
          .insertInto('removed_people')
          .values({ user_id: userId, removed_at: at })
          .onConflict((conflict) => conflict.column('user_id').doNothing())
          .execute()
        const theirs = [
          'people',
          'secrets',
          'mcp_servers',
          'rules',
          'instructions',
          'notices',
          'chat_marks',
          'projects',
        ] as const
        for (const table of theirs) await trx.deleteFrom(table).where('user_id', '=', userId).execute()
        await trx.deleteFrom('agent_settings').where('subject', '=', `person:${userId}`).execute()
        await trx.deleteFrom('shares').where('kind', '=', 'person').where('target_id', '=', userId).execute()
      }),
  }
}

function toPerson({ email, role: held, teams }: SessionsSchema['people']): KnownPerson {
  return {
    email: email === '' ? undefined : email,
    role: held === null ? undefined : role.parse(held),
    teams: teams === null ? [] : idList.parse(JSON.parse(teams)),
  }
}

export async function addPeople({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('people')
    .addColumn('user_id', 'text', (column) => column.primaryKey())
    .addColumn('email', 'text', (column) => column.notNull())
    .execute()
}

export async function addRemovedPeople({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('removed_people')
    .addColumn('user_id', 'text', (column) => column.primaryKey())
    .addColumn('removed_at', 'bigint', (column) => column.notNull())
    .execute()
}

export async function addRolesOfPeople({ schema }: Kysely<unknown>): Promise<void> {
  await schema.alterTable('people').addColumn('role', 'text').execute()
  await schema.alterTable('people').addColumn('teams', 'text').execute()
}
