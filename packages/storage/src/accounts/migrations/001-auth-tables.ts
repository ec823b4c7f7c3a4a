/**
 * better-auth's tables under our names (`session` is taken by our own glossary), as
 * `compileMigrations()` of better-auth 1.7.25 emits them for the options in `../auth.ts`. A test
 * holds the two together: after an upgrade of better-auth or a new plugin, write what it still
 * wants into a further migration. On PostgreSQL they are the same: times are text, and flags
 * numbers, so that our own reads of them are one.
 */
import { sql } from 'kysely'
import type { Migration } from '../../database/database.ts'
import { timeType } from '../../database/dialect.ts'

const statementsFor = (time: 'date' | 'text'): string[] => [
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

export const authTables: Migration = {
  async up(db) {
    for (const statement of statementsFor(timeType(db))) await sql.raw(statement).execute(db)
  },
}
