/**
 * Encryption and signatures with a passphrase: scrypt derives a secret, HKDF a key for each use.
 * AES-256-GCM seals parts, HMAC-SHA256 signs the manifest.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  type DecipherGCM,
  hkdfSync,
  randomBytes,
  scrypt,
  type ScryptOptions,
} from 'node:crypto'
import { promisify } from 'node:util'
import { z } from 'zod'
import { BackupError } from './backup-error.ts'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
/** Costs half a second and 128 MiB per guess. */
const COST = { N: 2 ** 17, r: 8, p: 1 }
/** Limit for scrypt parameters of a backup, in bytes. */
const MOST_MEMORY = 1024 ** 3
/** Limit for `p`, which multiplies the time. */
const MOST_PARALLEL = 16
const CHECK = Buffer.from('sandlot backup')

const base64 = z.string().regex(/^[A-Za-z0-9+/]+=*$/)

/** Parameters of a sealed part; not secret. */
export const seal = z.object({ nonce: base64, tag: base64 })
export type Seal = z.infer<typeof seal>

export const sealing = z.object({
  cipher: z.literal(CIPHER),
  scrypt: z.object({ N: z.int(), r: z.int(), p: z.int().max(MOST_PARALLEL), salt: base64 }),
  /** A known text, sealed, to check a passphrase. */
  check: seal.extend({ text: base64 }),
})
type Sealing = z.infer<typeof sealing>

export interface BackupKeys {
  seal: Buffer
  /** HMAC key. Undefined for an unsigned backup of an earlier version. */
  manifest: Buffer | undefined
}

const derived = (secret: Buffer, use: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', `sandlot backup ${use}`, KEY_BYTES))

const keysOf = (secret: Buffer): BackupKeys & { manifest: Buffer } => ({
  seal: derived(secret, 'seal'),
  manifest: derived(secret, 'manifest'),
})

/** HMAC-SHA256, hexadecimal. */
export function signed(key: Buffer, text: string): string {
  return createHmac('sha256', key).update(text).digest('hex')
}

async function secretOf(passphrase: string, { N, r, p, salt }: Sealing['scrypt']): Promise<Buffer> {
  const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt)
  const options = { N, r, p, maxmem: MOST_MEMORY }
  // Keyboards produce different code points for the same letter.
  return derive(passphrase.normalize('NFKC'), Buffer.from(salt, 'base64'), KEY_BYTES, options)
}

/** Derives new keys. */
export async function newSealing(
  passphrase: string,
): Promise<{ keys: BackupKeys & { manifest: Buffer }; sealing: Sealing }> {
  const cost = { ...COST, salt: randomBytes(16).toString('base64') }
  const keys = keysOf(await secretOf(passphrase, cost))
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, keys.seal, nonce)
  const text = Buffer.concat([cipher.update(CHECK), cipher.final()])
  const check = {
    nonce: nonce.toString('base64'),
    tag: cipher.getAuthTag().toString('base64'),
    text: text.toString('base64'),
  }
  return { keys, sealing: { cipher: CIPHER, scrypt: cost, check } }
}

/**
 * The keys of a backup. `isSigned`: by its format. Earlier versions sealed with the secret itself,
 * so removing a signature does not make a signed backup an unsigned one. Throws `BackupError`:
 * `wrong_passphrase`, and `damaged` if the seals are of the other format.
 */
export async function openSealing(
  passphrase: string,
  { scrypt: cost, check }: Sealing,
  isSigned: boolean,
): Promise<BackupKeys> {
  const secret = await secretOf(passphrase, cost)
  const own = keysOf(secret)
  const earlier = { seal: secret, manifest: undefined }
  const [keys, others] = isSigned ? [own, earlier] : [earlier, own]
  if (opens(keys.seal, check)) return keys
  if (opens(others.seal, check))
    throw new BackupError(
      'damaged',
      'The backup was changed: its format does not match its encryption, as if the signature was removed. Nothing was restored.',
      'Copy it again from its source, or use another backup.',
    )
  throw new BackupError(
    'wrong_passphrase',
    'The passphrase is wrong for this backup. Nothing was restored.',
    'Set SANDLOT_BACKUP_PASSPHRASE_FILE to the file used for the backup, or type the passphrase.',
  )
}

function opens(key: Buffer, { text, ...parameters }: Sealing['check']): boolean {
  try {
    const decipher = decipherOf(key, parameters)
    decipher.update(Buffer.from(text, 'base64'))
    decipher.final()
    return true
  } catch {
    return false // another key, or another text
  }
}

/** Seals a stream; call `seal()` after its end. */
export function sealed(
  key: Buffer,
  source: AsyncIterable<Uint8Array>,
): { bytes: AsyncIterable<Uint8Array>; seal: () => Seal } {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce)
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) yield cipher.update(chunk)
    yield cipher.final()
  }
  return {
    bytes: bytes(),
    seal: () => ({ nonce: nonce.toString('base64'), tag: cipher.getAuthTag().toString('base64') }),
  }
}

/** Opens a sealed stream. Throws at its end if it was changed. */
export async function* unsealed(
  key: Buffer,
  parameters: Seal,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const decipher = decipherOf(key, parameters)
  for await (const chunk of source) yield decipher.update(chunk)
  yield decipher.final()
}

function decipherOf(key: Buffer, { nonce, tag }: Seal): DecipherGCM {
  const decipher = createDecipheriv(CIPHER, key, Buffer.from(nonce, 'base64'))
  decipher.setAuthTag(Buffer.from(tag, 'base64'))
  return decipher
}
