/**
 * Tables of accounts.db in our own queries. The `auth_*` tables are written through better-auth,
 * except where it has no call or one transaction is required: a removal, a role by groups, an
 * unlinked provider, the end of one sign-in, a new password.
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
  /** Short-lived values: a flow at a provider, a sign-in that waits for a code. */
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
    /** Key of the provider; null: by password. */
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
    /** Name of the invited user. */
    usedBy: string | null
  }
  password_reset: {
    /** SHA-256 of the token in its link, hex. */
    hash: string
    userId: string
    expiresAt: number
  }
  /** Users who entered their address themselves, with an invitation for any: unconfirmed. */
  unproven_address: { userId: string }
  group_role: {
    userId: string
    /** The role without any group. */
    own: Role
    /** The role from groups. */
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
    /** Added by an administrator, or by the groups of a sign-in, which may also remove it. */
    source: 'admin' | 'groups'
  }
  /** Adopted teams of the agent's configuration file, including removed ones. */
  team_seed: { id: string }
  /** Their members without an account yet, by id or address. */
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
    /** Treatment of files and chats. */
    data: RemovedData
    removedAt: number
    /** 1 when all work is done. A done `purge` is deleted. */
    done: number
    /** The reason of the last failure; null also before the first attempt. */
    problem: string | null
  }
  push_subscription: {
    endpoint: string
    userId: string
    /** The browser's sign-in: pushes end with it. */
    signInId: string
    p256dh: string
    auth: string
    createdAt: number
    /** Consecutive ones. */
    failures: number
    /** The earliest time of the next push. */
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
    /** 1: the user sees a page there. */
    looking: number
    /** Time of the write, by the database's clock. */
    at: number
  }
  counters: CountersTable
}
