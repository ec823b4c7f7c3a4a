/**
 * The tables of accounts.db that our own queries touch. The `auth_*` tables are written through
 * better-auth alone, but for what it has no call for, or has to be one transaction: a removal, a
 * role by groups, an unlinked provider, the end of one sign-in, a new password.
 */
import type { Generated } from 'kysely'
import type { RemovedData } from '@sandlot/shared/account/api'
import type { Role } from '@sandlot/shared/account/role'
import type { Migrations } from '../database/database.ts'
import { addAudit } from '../audit/audit.ts'
import { type AlertsTables, alertsTables } from '../accounts/alerts.ts'
import { type NotificationsTables, notificationsTables } from '../accounts/notifications.ts'
import { type ServicesTables, servicesKeys, servicesTables } from '../accounts/services.ts'
import { type UploadsTable, uploadsTable } from '../accounts/uploads.ts'
import { authTables } from '../accounts/migrations/001-auth-tables.ts'
import { apiKeys } from '../accounts/migrations/002-api-keys.ts'
import { removals } from '../accounts/migrations/003-removals.ts'
import { removalProblems } from '../accounts/migrations/004-removal-problems.ts'
import { rolesAndTeams } from '../accounts/migrations/005-roles-and-teams.ts'
import { passwordResets } from '../accounts/migrations/009-password-resets.ts'
import { teamSeeds } from '../accounts/migrations/010-team-seeds.ts'
import { signIn } from '../accounts/migrations/006-sign-in.ts'
import { keyScopes } from '../accounts/migrations/007-key-scopes.ts'
import { secondFactor } from '../accounts/migrations/008-second-factor.ts'

export interface AccountsSchema extends NotificationsTables, AlertsTables, ServicesTables {
  auth_user: {
    id: string
    name: string
    email: string
    role: string | null
    twoFactorEnabled: number | null
  }
  auth_session: {
    id: string
    userId: string
    ipAddress: string | null
    userAgent: string | null
    createdAt: string
    expiresAt: string
  }
  auth_account: {
    id: string
    userId: string
    /** `credential`, or the key of a provider. */
    providerId: string
    accountId: string
    idToken: string | null
    /** Its hash. */
    password: string | null
    createdAt: string
    updatedAt: string
  }
  /** What is valid for a while: a flow at a provider, a sign-in that waits for a code. */
  auth_verification: {
    id: string
    identifier: string
    value: string
    expiresAt: string
    createdAt: string
    updatedAt: string
  }
  sign_in: {
    id: string
    /** Key of the provider by which it began; null: by password. */
    provider: string | null
    lastUsedAt: number
  }
  invitation: {
    id: string
    /** SHA-256 of the token in its link, hex. */
    hash: string
    role: string
    /** Ids, as a JSON list. */
    teams: string
    email: string | null
    createdAt: number
    createdBy: string
    expiresAt: number
    /** Name of the person it made. */
    usedBy: string | null
  }
  password_reset: {
    /** SHA-256 of the token in its link, hex. */
    hash: string
    userId: string
    expiresAt: number
  }
  /** People who named their address themselves, by an invitation for any: not surely theirs. */
  unproven_address: { userId: string }
  group_role: {
    userId: string
    /** The role without any group. */
    own: Role
    /** That which groups gave in its place. */
    given: Role
  }
  api_key: {
    id: string
    userId: string
    name: string
    /** The first characters of the secret, for people. */
    prefix: string
    /** SHA-256 of the whole secret, hex. */
    hash: string
    createdAt: number
    lastUsedAt: number | null
    /** Separated by spaces. */
    scopes: Generated<string>
    /** Null: never. */
    expiresAt: number | null
  }
  team: {
    id: string
    name: string
    /** The name in lower case. */
    nameKey: string
    createdAt: number
  }
  team_member: {
    teamId: string
    userId: string
    /** Added by an administrator, or by the groups of a sign-in, which also remove it. */
    source: 'admin' | 'groups'
  }
  /** Teams of the agent's configuration file that were adopted, also removed ones. */
  team_seed: { id: string }
  /** Who is in one of them and has no account yet, by id or address. */
  team_seed_member: { teamId: string; key: string }
  upload: UploadsTable
  removal: {
    userId: string
    name: string
    email: string
    /** What becomes of files and chats. */
    data: RemovedData
    removedAt: number
    /** 1 when nothing is left to do. One with `purge` goes then. */
    done: number
    /** Why the last try did not do it; null also before the first. */
    problem: string | null
  }
}

export const accountsMigrations: Migrations = {
  '001_auth_tables': authTables,
  '002_api_keys': apiKeys,
  '003_removals': removals,
  '004_removal_problems': removalProblems,
  '005_roles_and_teams': rolesAndTeams,
  '006_sign_in': signIn,
  '007_key_scopes': keyScopes,
  '008_second_factor': secondFactor,
  '009_password_resets': passwordResets,
  '010_team_seeds': teamSeeds,
  '012_notices': notificationsTables,
  '013_alerts': alertsTables,
  '014_audit': { up: addAudit },
  '015_services': servicesTables,
  '016_uploads': uploadsTable,
  '018_services_keys': servicesKeys,
}
