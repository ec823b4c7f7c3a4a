/**
 * Secrets of people: tokens and passwords, by name, sealed before they are stored. A value goes to
 * a tool or a server that works for that person, and nowhere else: not into a log, an event, a
 * sandbox or an export.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import { MAX_SECRET_CHARS, secretName } from '@sandlot/shared/account/secrets'
import type { SecretRows } from '@sandlot/storage/people/secrets'
import type { Vault } from './vault.ts'

/** Sealed again in one transaction each; so many are read at a time. */
const RESEAL_PAGE = 100

interface SecretsParts {
  rows: SecretRows
  vault: Vault
  /** Called with each value that is read or set, which the log must not show. */
  redact: (value: string) => void
  /** Epoch milliseconds. */
  now: () => number
}

export class UserSecrets {
  readonly #parts: SecretsParts

  constructor(parts: SecretsParts) {
    this.#parts = parts
  }

  /**
   * Undefined when this user has none of that name. Throws `SealError` when it cannot be opened.
   */
  async get(userId: string, name: string): Promise<string | undefined> {
    const { rows, vault, redact } = this.#parts
    const row = await rows.get(userId, name)
    if (row === undefined) return undefined
    const value = vault.open({ userId, name }, row.keyId, row.sealed)
    redact(value)
    return value
  }

  /**
   * Store it in place of an earlier one; undefined removes it. The name is anything up to 256
   * characters; those that a person gives follow `secretName`. Throws `too_large`, `bad_request`.
   */
  async set(userId: string, name: string, value: string | undefined, audit?: NewAudit): Promise<void> {
    const { rows, vault, redact, now } = this.#parts
    if (value === undefined) {
      await rows.remove(userId, name)
      return
    }
    if (name === '' || name.length > 256)
      throw new SandlotError('bad_request', 'This is no name of a secret.')
    if (value.length > MAX_SECRET_CHARS)
      throw new SandlotError('too_large', `A secret has at most ${MAX_SECRET_CHARS} characters.`)
    redact(value)
    const sealed = vault.seal({ userId, name }, value)
    await rows.put(userId, { name, keyId: vault.keyId, sealed, updatedAt: now() }, audit)
  }

  /** True when there was one. */
  remove(userId: string, name: string, audit?: NewAudit): Promise<boolean> {
    return this.#parts.rows.remove(userId, name, audit)
  }

  /** Those of these names, of every user: what the agent keeps for a server that is gone. */
  removeNamed(names: readonly string[]): Promise<void> {
    return this.#parts.rows.removeNamed(names)
  }

  /**
   * Those that a person has named, without what they hold. What the agent itself keeps is not among
   * them.
   */
  async names(userId: string): Promise<{ name: string; updatedAt: number }[]> {
    const all = await this.#parts.rows.names(userId)
    return all.filter(({ name }) => secretName.safeParse(name).success)
  }

  /**
   * Seal with the current key what an earlier one has sealed; yields after each, when it is
   * durable. Returns how many were, and `user/name` of those that no key opens any more; they stay
   * as they are.
   */
  async *reseal(): AsyncGenerator<void, { resealed: number; lost: string[] }> {
    const { rows, vault } = this.#parts
    const lost: string[] = []
    let resealed = 0
    for (;;) {
      const page = await rows.sealedOtherwise(vault.keyId, RESEAL_PAGE + lost.length)
      const open = page.filter((row) => !lost.includes(`${row.userId}/${row.name}`))
      if (open.length === 0) return { resealed, lost }
      for (const { userId, ...row } of open) {
        const label = { userId, name: row.name }
        const text = tryOpen(vault, label, row.keyId, row.sealed)
        if (text === undefined) {
          lost.push(`${userId}/${row.name}`)
          continue
        }
        await rows.put(userId, { ...row, keyId: vault.keyId, sealed: vault.seal(label, text) })
        resealed++
        yield
      }
    }
  }
}

function tryOpen(
  vault: Vault,
  label: { userId: string; name: string },
  keyId: string,
  sealed: Uint8Array,
): string | undefined {
  try {
    return vault.open(label, keyId, sealed)
  } catch (error) {
    if (error instanceof Error && error.name === 'SealError') return undefined
    throw error
  }
}
