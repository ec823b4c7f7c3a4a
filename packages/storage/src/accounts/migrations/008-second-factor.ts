/** The second factor as better-auth's plugin keeps it, and invitations. */
import { sql } from 'kysely'
import type { Migration } from '../../database/database.ts'
import { timeType } from '../../database/dialect.ts'

const statementsFor = (time: 'date' | 'text'): string[] => [
  `alter table "auth_user" add column "twoFactorEnabled" integer`,
  `create table "auth_two_factor" (
    "id" text not null primary key, "secret" text not null, "backupCodes" text not null,
    "userId" text not null references "auth_user" ("id") on delete cascade,
    "verified" integer, "failedVerificationCount" integer, "lockedUntil" ${time})`,
  `create index "auth_two_factor_secret_idx" on "auth_two_factor" ("secret")`,
  `create index "auth_two_factor_userId_idx" on "auth_two_factor" ("userId")`,
]

export const secondFactor: Migration = {
  async up(db) {
    for (const statement of statementsFor(timeType(db))) await sql.raw(statement).execute(db)
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
  },
}
