/**
 * Who may come in: users, their sign-ins, their API keys. One writing process (the service).
 * Passwords are kept as argon2id, API keys as SHA-256 of 206 random bits; neither can be read back.
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

/** What a key may do, and until when; default: everything but `admin`, for ever. */
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

/** What is valid for a short while, at every service, and once. */
export interface Tickets {
  /** `key`: not to be guessed. */
  put(key: string, value: string, validMs: number): Promise<void>
  /** Undefined: there is none, or it was taken or has expired. */
  take(key: string): Promise<string | undefined>
}

export interface AccountsStore {
  hasUsers(): Promise<boolean>
  /**
   * Throws `SandlotError`: conflict (the address has an account), bad_request. The password is
   * 8–128 characters.
   */
  createUser(user: NewUser): Promise<Account>
  /**
   * As `createUser`, only while there is no user; of several at once one wins. Throws `conflict`.
   */
  createFirstAdministrator(user: Omit<NewUser, 'role'>): Promise<Account>
  readonly audit: AuditLog
  readonly teams: TeamsStore
  readonly notices: NotificationsStore
  readonly alerts: AlertsStore
  /** By name. */
  listUsers(): Promise<Account[]>
  /**
   * Throws `not_found`, and `conflict` for the last administrator and where the account is not as
   * `was` says any more.
   */
  changePerson(userId: string, change: ChangePersonRequest, audit?: NewAudit): Promise<Account>
  /**
   * The account ends at once, with its sign-ins and API keys; the rest is a removal that is not
   * done. For a person who was removed before, `purge` can still be chosen. Throws `not_found`, and
   * `conflict` for the last administrator and where data is to be kept that is being purged.
   */
  removeUser(userId: string, data: RemovedData, audit?: NewAudit): Promise<Removal>
  /** Newest first. */
  removals(): Promise<Removal[]>
  /** What it asked for is done. */
  removalDone(removal: Pick<Removal, 'id' | 'data'>): Promise<void>
  /** What it asked for is not done, for a reason that administrators are shown until it is. */
  removalFailed(removal: Pick<Removal, 'id' | 'data'>, problem: string): Promise<void>
  /**
   * Their sign-ins end. Answers the new password, which is kept nowhere else. Throws `not_found`.
   */
  resetPassword(userId: string): Promise<string>
  /**
   * Throws `unauthenticated`, the same for an unknown address and a wrong password, and
   * `SecondFactorNeeded`.
   */
  signIn(credentials: { email: string; password: string }, from: Origin): Promise<SignedIn>
  /**
   * Ends the sign-in of this `Cookie` header, if it is one. Answers whose it was, and the cookies
   * that remove it.
   */
  signOut(cookie: string): Promise<{ signInId: string | undefined; setCookies: string[] }>
  /**
   * Changes the password of the user whom this `Cookie` header signs in. All of their sign-ins end;
   * returns a new one in place of this. Throws `unauthenticated` (no such sign-in), `forbidden`
   * (`current` is not the password), `bad_request`.
   */
  changePassword(cookie: string, change: { current: string; password: string }): Promise<SignedIn>
  /** Throws `forbidden`: it is not the password of this person. */
  checkPassword(userId: string, password: string): Promise<void>
  /** By a `Cookie` header. Undefined: none, forged, ended or expired. */
  findBySession(cookie: string): Promise<SignedIn | undefined>
  /** By the secret of an API key. Throws `unauthenticated` for one that has expired. */
  findByKey(secret: string): Promise<FoundKey | undefined>
  /** The only time that the secret is seen. Throws `conflict` beyond `MAX_KEYS_PER_USER`. */
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
  /** What services on one database tell one another. */
  readonly services: ServicesStore
  /** Images that wait, where several services share them. */
  readonly uploads: UploadShelf
  /**
   * Rejects with `not_ready` when the accounts cannot be read, or not be written: the disk is full,
   * the file is damaged.
   */
  ping(): Promise<void>
  close(): Promise<void>
}

export const MAX_KEYS_PER_USER = 100
export const API_KEY_PREFIX = 'sk-sandlot-'
