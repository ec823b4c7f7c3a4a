/**
 * The stored records of one user's access to one server: tokens, client registration, pending
 * sign-ins.
 */
import { SealError } from '../../people/vault.ts'

type OAuthRecord = 'tokens' | 'client' | 'sign-ins'

export interface OAuthRecords {
  read(what: OAuthRecord): Promise<string | undefined>
  /** Undefined removes it. */
  save(what: OAuthRecord, value: string | undefined): Promise<void>
}

/** A user's secrets, encrypted, by name. */
export interface SecretStore {
  get(userId: string, name: string): Promise<string | undefined>
  /** Undefined removes it. */
  set(userId: string, name: string, value: string | undefined): Promise<void>
}

/** Records that live as long as this process. */
export function memoryRecords(): OAuthRecords {
  const records = new Map<OAuthRecord, string>()
  return {
    read: async (what) => records.get(what),
    async save(what, value) {
      if (value === undefined) records.delete(what)
      else records.set(what, value)
    },
  }
}

/**
 * Stored as secrets of the user, under names that users cannot choose: a user must not be able to
 * read a token.
 */
export class SecretRecords implements OAuthRecords {
  readonly #secrets: SecretStore
  readonly #userId: string
  readonly #server: string
  readonly #migrations = new Map<OAuthRecord, Promise<void>>()

  constructor(secrets: SecretStore, userId: string, server: string) {
    this.#secrets = secrets
    this.#userId = userId
    this.#server = server
  }

  async read(what: OAuthRecord): Promise<string | undefined> {
    await this.#migrated(what)
    return this.#open(this.#name(what))
  }

  async save(what: OAuthRecord, value: string | undefined): Promise<void> {
    await this.#migrated(what)
    await this.#secrets.set(this.#userId, this.#name(what), value)
  }

  #name(what: OAuthRecord): string {
    return `mcp:${this.#server}:${what}`
  }

  /**
   * A record that no key opens counts as absent: users cannot remove it, and the next sign-in
   * replaces it.
   */
  async #open(name: string): Promise<string | undefined> {
    try {
      return await this.#secrets.get(this.#userId, name)
    } catch (error) {
      if (error instanceof SealError) return undefined
      throw error
    }
  }

  /**
   * Moves a record from its former name, which users could choose, before it is read or written.
   */
  #migrated(what: OAuthRecord): Promise<void> {
    const known = this.#migrations.get(what) ?? this.#migrate(what)
    this.#migrations.set(what, known)
    // Retry a failed migration the next time.
    known.catch(() => this.#migrations.delete(what))
    return known
  }

  async #migrate(what: OAuthRecord): Promise<void> {
    if (what === 'sign-ins') return
    const former = `mcp.${this.#server}.${what}`
    const value = await this.#open(former)
    if (value !== undefined && (await this.#open(this.#name(what))) === undefined)
      await this.#secrets.set(this.#userId, this.#name(what), value)
    // Also one that cannot be opened.
    await this.#secrets.set(this.#userId, former, undefined)
  }
}
