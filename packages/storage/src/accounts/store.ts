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

export interface AccountsStore {
  hasUsers(): Promise<boolean>
  /**
   * Throws `SandlotError`: conflict (address in use), bad_request. Passwords have 8–128 characters.
   */
  createUser(user: NewUser): Promise<Account>
  /**
   * Like `createUser`, only while there is no user; of several concurrent calls one wins. Throws
   * `conflict`.
   */
  createFirstAdministrator(user: Omit<NewUser, 'role'>): Promise<Account>
  readonly audit: AuditLog
  readonly teams: TeamsStore
  readonly notifications: NotificationsStore
  readonly alerts: AlertsStore
  /** By name. */
  listUsers(): Promise<Account[]>
  /**
   * Throws `not_found`, and `conflict` for the last administrator and if the account differs from
   * `was`.
   */
  changePerson(userId: string, change: ChangePersonRequest, audit?: NewAudit): Promise<Account>
  /**
   * Ends the account with its sign-ins and API keys at once, and records a removal for the rest. A
   * removed person can still be purged. Throws `not_found`, and `conflict` for the last
   * administrator and for retaining data that is being purged.
   */
  removeUser(userId: string, data: RemovedData, audit?: NewAudit): Promise<Removal>
  /** Newest first. */
  removals(): Promise<Removal[]>
  /** All requested work is done. */
  removalDone(removal: Pick<Removal, 'id' | 'data'>): Promise<void>
  /** Records the reason of a failure, shown to administrators until it is done. */
  removalFailed(removal: Pick<Removal, 'id' | 'data'>, problem: string): Promise<void>
  /**
   * Ends their sign-ins. Returns the new password, which is stored nowhere else. Throws
   * `not_found`.
   */
  resetPassword(userId: string): Promise<string>
  /**
   * Throws `unauthenticated`, the same for an unknown address and a wrong password, and
   * `SecondFactorNeeded`.
   */
  signIn(credentials: { email: string; password: string }, from: Origin): Promise<SignedIn>
  /**
   * Ends the sign-in of this `Cookie` header, if any. Returns its id, and cookies that remove it.
   */
  signOut(cookie: string): Promise<{ signInId: string | undefined; setCookies: string[] }>
  /**
   * Changes the password of the user signed in by this `Cookie` header. Ends all of their sign-ins
   * and returns a new one. Throws `unauthenticated` (no such sign-in), `forbidden` (`current` is
   * wrong), `bad_request`.
   */
  changePassword(cookie: string, change: { current: string; password: string }): Promise<SignedIn>
  /** Throws `forbidden`: wrong password. */
  checkPassword(userId: string, password: string): Promise<void>
  /** By a `Cookie` header. Undefined: none, forged, ended or expired. */
  findBySession(cookie: string): Promise<SignedIn | undefined>
  /** By the secret of an API key. Throws `unauthenticated` for an expired one. */
  findByKey(secret: string): Promise<FoundKey | undefined>
  /** The only time that the secret is visible. Throws `conflict` above `MAX_KEYS_PER_USER`. */
  createKey(userId: string, name: string, grant?: KeyGrant, audit?: NewAudit): Promise<NewApiKey>
  /** Newest first. */
  listKeys(userId: string): Promise<ApiKey[]>
  /** False when this user has no such key. */
  deleteKey(userId: string, id: string): Promise<boolean>
  readonly external: ExternalSignIns
  readonly signIns: SignInsStore
  readonly secondFactor: SecondFactors
  readonly invitations: InvitationsStore
  readonly passwordResets: PasswordResetsStore
  readonly tickets: Tickets
  /** State shared by services on one database. */
  readonly services: ServicesStore
  /** Uploaded images, if several services share them. */
  readonly uploads: UploadShelf
  /**
   * Rejects with `not_ready` when the accounts cannot be read or written: full disk, damaged file.
   */
  ping(): Promise<void>
  close(): Promise<void>
}

export const MAX_KEYS_PER_USER = 100
export const API_KEY_PREFIX = 'sk-sandlot-'
