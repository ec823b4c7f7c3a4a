/**
 * The tables of accounts.db that our own queries touch. The `auth_*` tables are written through
 * better-auth alone, but for what it has no call for, or has to be one transaction: a removal, a
 * role by groups, an unlinked provider, the end of one sign-in, a new password.
 */
import type { RemovedData } from '@sandlot/shared/account/api'
import type { Role } from '@sandlot/shared/account/role'
import type { Generated } from 'kysely'
import type { ChangesTable, CountersTable } from './sessions.ts'

export interface AccountsSchema {
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
  upload: {
    id: string
    userId: string
    bytes: Uint8Array
    size: number
    createdAt: number
  }
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
  push_subscription: {
    endpoint: string
    userId: string
    /** Of the browser: pushes end with it. */
    signInId: string
    p256dh: string
    auth: string
    createdAt: number
    /** In a row. */
    failures: number
    /** Nothing is sent before. */
    retryAt: number
  }
  notice_choice: { userId: string; choice: string }
  notice_cursor: { lane: string; id: number }
  alert_state: { kind: string; state: string }
  changes: ChangesTable
  presence: {
    userId: string
    /** Id of the service. */
    service: string
    /** 1: a page of theirs is seen there. */
    looking: number
    /** When that was written, by the database's clock. */
    at: number
  }
  counters: CountersTable
}
