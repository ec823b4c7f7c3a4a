/** What is kept of one user's access to one server: the tokens, who we are to their authority, the sign-ins under way. */
import { SealError } from '../../secrets/vault.ts'

export type OAuthRecord = 'tokens' | 'client' | 'sign-ins'

export interface OAuthRecords {
  read(what: OAuthRecord): Promise<string | undefined>
  /** Undefined removes it. */
  keep(what: OAuthRecord, value: string | undefined): Promise<void>
}

/** Of a user, encrypted, by name. */
export interface SecretStore {
  get(userId: string, name: string): Promise<string | undefined>
  /** Undefined removes it. */
  set(userId: string, name: string, value: string | undefined): Promise<void>
}

/** For as long as this process lives. */
export function recordsInMemory(): OAuthRecords {
  const kept = new Map<OAuthRecord, string>()
  return {
    read: async (what) => kept.get(what),
    async keep(what, value) {
      if (value === undefined) kept.delete(what)
      else kept.set(what, value)
    },
  }
}

/** Among the user's secrets. No person can name one like that: where a token is shown must be nobody's word. */
export class SecretRecords implements OAuthRecords {
  readonly #secrets: SecretStore
  readonly #userId: string
  readonly #server: string
  readonly #taken = new Map<OAuthRecord, Promise<void>>()

  constructor(secrets: SecretStore, userId: string, server: string) {
    this.#secrets = secrets
    this.#userId = userId
    this.#server = server
  }

  async read(what: OAuthRecord): Promise<string | undefined> {
    await this.#takenOver(what)
    return this.#opened(this.#name(what))
  }

  async keep(what: OAuthRecord, value: string | undefined): Promise<void> {
    await this.#takenOver(what)
    await this.#secrets.set(this.#userId, this.#name(what), value)
  }

  #name(what: OAuthRecord): string {
    return `mcp:${this.#server}:${what}`
  }

  /** A record that no key opens is none: no person can remove it, and signing in again puts another in its place. */
  async #opened(name: string): Promise<string | undefined> {
    try {
      return await this.#secrets.get(this.#userId, name)
    } catch (error) {
      if (error instanceof SealError) return undefined
      throw error
    }
  }

  /** What was kept under a name that a person could give gets its own, before anything is read or written. */
  #takenOver(what: OAuthRecord): Promise<void> {
    const known = this.#taken.get(what) ?? this.#takeOver(what)
    this.#taken.set(what, known)
    // What could not be read or written now may be the next time.
    known.catch(() => this.#taken.delete(what))
    return known
  }

  async #takeOver(what: OAuthRecord): Promise<void> {
    if (what === 'sign-ins') return
    const former = `mcp.${this.#server}.${what}`
    const value = await this.#opened(former)
    if (value !== undefined && (await this.#opened(this.#name(what))) === undefined)
      await this.#secrets.set(this.#userId, this.#name(what), value)
    // Also one that cannot be opened.
    await this.#secrets.set(this.#userId, former, undefined)
  }
}
