/**
 * Accounts: users, their sign-ins, their API keys. One writing process (the service). Passwords are
 * stored as argon2id, API keys as SHA-256 of 206 random bits; neither can be read back.
 */
import type { Account, ApiKey, NewApiKey, Removal, RemovedData } from '@sandlot/shared/account/api'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { ChangePersonRequest } from '@sandlot/shared/account/teams-api'
import type { AuditLog } from '../audit/audit.ts'
import type { AlertsStore } from './alerts.ts'
import type { NotificationsStore } from './notifications.ts'
import type { TeamsStore } from './teams.ts'
import type { KeyScope } from '@sandlot/shared/account/sign-in-api'
import type { ExternalSignIns } from './external.ts'
import type { SecondFactors } from './auth-second-factor.ts'
import type { InvitationsStore } from './invitations.ts'
import type { PasswordResetsStore } from './password-resets.ts'
import type { ServicesStore } from './services.ts'
import type { SignInsStore } from './sign-ins.ts'
import type { UploadShelf } from './uploads.ts'
import type { NewUser, Origin, SignedIn } from '../tables/account-records.ts'

/** Scopes and expiry of a key; default: everything except `admin`, for ever. */
export interface KeyGrant {
  scopes?: KeyScope[]
  expiresAt?: number | null
}

export interface FoundKey {
  account: Account
  keyId: string
  keyName: string
  scopes: KeyScope[]
}

/** Short-lived values, valid once, at every service. */
export interface Tickets {
  /** `key`: unguessable. */
  put(key: string, value: string, validMs: number): Promise<void>
  /** Undefined: unknown, already taken or expired. */
  take(key: string): Promise<string | undefined>
}

export interface UserRows {
  hasAny(): Promise<boolean>
  /**
   * Throws `SandlotError`: conflict (address in use), bad_request. Passwords have 8–128 characters.
   */
  create(user: NewUser): Promise<Account>
  /**
   * Like `create`, only while there is no user; of several concurrent calls one wins. Throws
   * `conflict`.
   */
  createFirstAdministrator(user: Omit<NewUser, 'role'>): Promise<Account>
  /** By name. */
  list(): Promise<Account[]>
  /**
   * Throws `not_found`, and `conflict` for the last administrator and if the account differs from
   * `was`.
   */
  change(userId: string, change: ChangePersonRequest, audit?: NewAudit): Promise<Account>
  /**
   * Ends the account with its sign-ins and API keys at once, and records a removal for the rest. A
   * removed person can still be purged. Throws `not_found`, and `conflict` for the last
   * administrator and for retaining data that is being purged.
   */
  remove(userId: string, data: RemovedData, audit?: NewAudit): Promise<Removal>
}

/** Removals with requested work elsewhere. */
export interface RemovalRows {
  /** Newest first. */
  list(): Promise<Removal[]>
  /** All requested work is done. */
  done(removal: Pick<Removal, 'id' | 'data'>): Promise<void>
  /** Records the reason of a failure, shown to administrators until it is done. */
  failed(removal: Pick<Removal, 'id' | 'data'>, problem: string): Promise<void>
}

interface Passwords extends PasswordResetsStore {
  /**
   * Ends their sign-ins. Returns the new password, which is stored nowhere else. Throws
   * `not_found`.
   */
  reset(userId: string): Promise<string>
  /**
   * Changes the password of the user signed in by this `Cookie` header. Ends all of their sign-ins
   * and returns a new one. Throws `unauthenticated` (no such sign-in), `forbidden` (`current` is
   * wrong), `bad_request`.
   */
  change(cookie: string, change: { current: string; password: string }): Promise<SignedIn>
  /** Throws `forbidden`: wrong password. */
  check(userId: string, password: string): Promise<void>
}

interface SignIns extends SignInsStore {
  /**
   * Throws `unauthenticated`, the same for an unknown address and a wrong password, and
   * `SecondFactorNeeded`.
   */
  signIn(credentials: { email: string; password: string }, from: Origin): Promise<SignedIn>
  /**
   * Ends the sign-in of this `Cookie` header, if any. Returns its id, and cookies that remove it.
   */
  signOut(cookie: string): Promise<{ signInId: string | undefined; setCookies: string[] }>
  /** By a `Cookie` header. Undefined: none, forged, ended or expired. */
  find(cookie: string): Promise<SignedIn | undefined>
}

export interface KeyRows {
  /** By the secret of an API key. Throws `unauthenticated` for an expired one. */
  find(secret: string): Promise<FoundKey | undefined>
  /** The only time that the secret is visible. Throws `conflict` above `MAX_KEYS_PER_USER`. */
  create(userId: string, name: string, grant?: KeyGrant, audit?: NewAudit): Promise<NewApiKey>
  /** Newest first. */
  list(userId: string): Promise<ApiKey[]>
  /** False when this user has no such key. */
  remove(userId: string, id: string): Promise<boolean>
}

/** State shared by services on one database. */
interface SharedState extends ServicesStore {
  readonly tickets: Tickets
  /** Uploaded images, if several services share them. */
  readonly uploads: UploadShelf
}

export interface AccountsStore {
  readonly users: UserRows
  readonly removals: RemovalRows
  readonly passwords: Passwords
  readonly signIns: SignIns
  readonly secondFactor: SecondFactors
  readonly external: ExternalSignIns
  readonly keys: KeyRows
  readonly invitations: InvitationsStore
  readonly teams: TeamsStore
  readonly notifications: NotificationsStore
  readonly alerts: AlertsStore
  readonly audit: AuditLog
  readonly services: SharedState
  /**
   * Rejects with `not_ready` when the accounts cannot be read or written: full disk, damaged file.
   */
  ping(): Promise<void>
  close(): Promise<void>
}

export const MAX_KEYS_PER_USER = 100
export const API_KEY_PREFIX = 'sk-sandlot-'
