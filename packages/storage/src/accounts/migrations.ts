/** Every migration of the accounts store, by the name that databases have recorded. */
import { type Kysely, sql } from 'kysely'
import { addAudit } from '../audit/audit.ts'
import { addCounters } from '../database/counters.ts'
import type { Migrations } from '../database/database.ts'
import { dialectOf, timeType } from '../database/dialect.ts'
import { addAlerts } from './alerts.ts'
import { addNotifications } from './notifications.ts'
import { addServices } from './services.ts'
import { addUploads } from './uploads.ts'

export const accountsMigrations: Migrations = {
  '001_auth_tables': addAuthTables,
  '002_api_keys': addApiKeys,
  '003_removals': addRemovals,
  '004_removal_problems': addRemovalProblems,
  '005_roles_and_teams': addRolesAndTeams,
  '006_sign_in': addSignIn,
  '007_key_scopes': addKeyScopes,
  '008_second_factor': addSecondFactor,
  '009_password_resets': addPasswordResets,
  '010_team_seeds': addTeamSeeds,
  '012_notices': addNotifications,
  '013_alerts': addAlerts,
  '014_audit': addAudit,
  '015_services': addServices,
  '016_uploads': addUploads,
  '018_services_keys': addCounters,
}

const authStatements = (time: 'date' | 'text'): string[] => [
  `create table "auth_user" (
    "id" text not null primary key, "name" text not null, "email" text not null unique,
    "emailVerified" integer not null, "image" text, "createdAt" ${time} not null, "updatedAt" ${time} not null,
    "role" text, "banned" integer, "banReason" text, "banExpires" ${time})`,
  `create table "auth_session" (
    "id" text not null primary key, "expiresAt" ${time} not null, "token" text not null unique,
    "createdAt" ${time} not null, "updatedAt" ${time} not null, "ipAddress" text, "userAgent" text,
    "userId" text not null references "auth_user" ("id") on delete cascade, "impersonatedBy" text)`,
  `create table "auth_account" (
    "id" text not null primary key, "accountId" text not null, "providerId" text not null,
    "userId" text not null references "auth_user" ("id") on delete cascade,
    "accessToken" text, "refreshToken" text, "idToken" text, "accessTokenExpiresAt" ${time},
    "refreshTokenExpiresAt" ${time}, "scope" text, "password" text,
    "createdAt" ${time} not null, "updatedAt" ${time} not null)`,
  `create table "auth_verification" (
    "id" text not null primary key, "identifier" text not null, "value" text not null,
    "expiresAt" ${time} not null, "createdAt" ${time} not null, "updatedAt" ${time} not null)`,
  `create index "auth_session_userId_idx" on "auth_session" ("userId")`,
  `create index "auth_account_userId_idx" on "auth_account" ("userId")`,
  `create index "auth_verification_identifier_idx" on "auth_verification" ("identifier")`,
]

/**
 * better-auth's tables under our names (`session` is a chat here), as `compileMigrations()` of
 * better-auth 1.7.25 emits them for the options in `auth-options.ts`. A test compares the two:
 * after an upgrade or a new plugin, add what is missing in a new migration. On PostgreSQL times are
 * text and flags numbers too, so that the same reads serve both databases.
 */
async function addAuthTables(db: Kysely<unknown>): Promise<void> {
  for (const statement of authStatements(timeType(db))) await sql.raw(statement).execute(db)
}

/**
 * Our own keys instead of @better-auth/api-key: its newest release (1.7.5) pins better-call 1.4.0
 * and @better-auth/utils 0.4.2, and better-auth 1.7.25 brings others of both.
 */
async function addApiKeys(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('api_key')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('userId', 'text', (column) => column.notNull().references('auth_user.id').onDelete('cascade'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('prefix', 'text', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull().unique())
    .addColumn('createdAt', 'bigint', (column) => column.notNull())
    .addColumn('lastUsedAt', 'bigint')
    .execute()
  await db.schema.createIndex('api_key_user').on('api_key').columns(['userId', 'createdAt']).execute()
}

/** Removed people: the rest of each removal, and the owners of retained files. */
async function addRemovals(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('removal')
    .addColumn('userId', 'text', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('email', 'text', (column) => column.notNull())
    .addColumn('data', 'text', (column) => column.notNull())
    .addColumn('removedAt', 'bigint', (column) => column.notNull())
    .addColumn('done', 'integer', (column) => column.notNull())
    .execute()
}

/** The reason that a removal is not done, for administrators. */
async function addRemovalProblems(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('removal').addColumn('problem', 'text').execute()
}

/** Renames the role `user` to `member`, and adds teams. */
async function addRolesAndTeams(db: Kysely<unknown>): Promise<void> {
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
    .addColumn('userId', 'text', (column) => column.notNull().references('auth_user.id').onDelete('cascade'))
    .addColumn('source', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('team_member_key', ['teamId', 'userId', 'source'])
    .execute()
  await db.schema.createIndex('team_member_user').on('team_member').column('userId').execute()
}

/** The provider and last use of a sign-in, and roles that come from groups. */
async function addSignIn(db: Kysely<unknown>): Promise<void> {
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
    // `own`: the role without any group; `given`: the role that groups gave instead.
    .addColumn('own', 'text', (column) => column.notNull())
    .addColumn('given', 'text', (column) => column.notNull())
    .execute()
}

/** Scopes and expiry of a key. Existing keys get the scopes that they had. */
async function addKeyScopes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('api_key')
    .addColumn('scopes', 'text', (column) => column.notNull().defaultTo('chat read files exec'))
    .execute()
  await db.schema.alterTable('api_key').addColumn('expiresAt', 'bigint').execute()
}

const secondFactorStatements = (time: 'date' | 'text'): string[] => [
  `alter table "auth_user" add column "twoFactorEnabled" integer`,
  `create table "auth_two_factor" (
    "id" text not null primary key, "secret" text not null, "backupCodes" text not null,
    "userId" text not null references "auth_user" ("id") on delete cascade,
    "verified" integer, "failedVerificationCount" integer, "lockedUntil" ${time})`,
  `create index "auth_two_factor_secret_idx" on "auth_two_factor" ("secret")`,
  `create index "auth_two_factor_userId_idx" on "auth_two_factor" ("userId")`,
]

/** The second factor as better-auth's plugin stores it, and invitations. */
async function addSecondFactor(db: Kysely<unknown>): Promise<void> {
  for (const statement of secondFactorStatements(timeType(db))) await sql.raw(statement).execute(db)
  await db.schema
    .createTable('invitation')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('hash', 'text', (column) => column.notNull().unique())
    .addColumn('role', 'text', (column) => column.notNull())
    .addColumn('teams', 'text', (column) => column.notNull())
    .addColumn('email', 'text')
    .addColumn('createdAt', 'bigint', (column) => column.notNull())
    .addColumn('createdBy', 'text', (column) => column.notNull())
    .addColumn('expiresAt', 'bigint', (column) => column.notNull())
    .addColumn('usedBy', 'text')
    .execute()
}

/** Tokens for a forgotten password, and accounts with an unconfirmed address. */
async function addPasswordResets(db: Kysely<unknown>): Promise<void> {
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
}

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

/**
 * Teams of the agent's configuration file, adopted once. A trigger adds members without an account
 * when their account is made.
 */
async function addTeamSeeds(db: Kysely<unknown>): Promise<void> {
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
}
