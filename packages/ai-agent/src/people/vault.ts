/**
 * Seals texts with keys derived from the deployment's: AES-256-GCM, a key for each person by
 * HKDF-SHA256, a random nonce, and whose it is and how it is called bound to it, so that no sealed
 * text can be passed off as another.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'

/** First byte of what is sealed. Another way of sealing gets another one. */
const FORMAT = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SALT = 'sandlot secrets'

/** The owner and name of a secret. */
interface Label {
  userId: string
  name: string
}

/** A sealed value cannot be opened: another key, another label, or changed bytes. */
export class SealError extends Error {
  override readonly name = 'SealError'
}

export interface Vault {
  /** The id of the current sealing key. Reveals nothing about it. */
  readonly keyId: string
  seal(label: Label, text: string): Uint8Array
  /** Throws `SealError`. */
  open(label: Label, keyId: string, sealed: Uint8Array): string
}

/**
 * `keys`: the deployment's key first, which seals; then earlier ones, which only open. 32 bytes
 * each.
 */
export function createVault(keys: readonly [Uint8Array, ...Uint8Array[]]): Vault {
  const [current] = keys
  const byId = new Map(keys.map((key) => [idOf(key), key]))
  const keyId = idOf(current)
  return {
    keyId,
    seal(label, text) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', keyOf(current, label.userId), nonce)
      cipher.setAAD(boundTo(label))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return new Uint8Array(Buffer.concat([Buffer.of(FORMAT), nonce, cipher.getAuthTag(), body]))
    },
    open(label, id, sealed) {
      const key = byId.get(id)
      if (key === undefined)
        throw new SealError(
          `The secret ${label.name} was sealed with another deployment key (${id}). Set it again, or restore the keys that belong to this data.`,
        )
      const at = 1 + NONCE_BYTES + TAG_BYTES
      if (sealed[0] !== FORMAT || sealed.length < at) throw damaged(label)
      const cipher = createDecipheriv(
        'aes-256-gcm',
        keyOf(key, label.userId),
        sealed.subarray(1, 1 + NONCE_BYTES),
      )
      cipher.setAAD(boundTo(label))
      cipher.setAuthTag(sealed.subarray(1 + NONCE_BYTES, at))
      try {
        return Buffer.concat([cipher.update(sealed.subarray(at)), cipher.final()]).toString('utf8')
      } catch (cause) {
        throw damaged(label, cause)
      }
    },
  }
}

function damaged({ name }: Label, cause?: unknown): SealError {
  return new SealError(`The secret ${name} is damaged, or not the one it is called. Set it again.`, { cause })
}

function keyOf(deploymentKey: Uint8Array, userId: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', deploymentKey, SALT, `seal ${userId}`, 32))
}

function idOf(deploymentKey: Uint8Array): string {
  const named = new Uint8Array(hkdfSync('sha256', deploymentKey, SALT, 'key id', 32))
  return createHash('sha256').update(named).digest('hex').slice(0, 16)
}

function boundTo({ userId, name }: Label): Buffer {
  return Buffer.from(JSON.stringify([FORMAT, userId, name]))
}
