/** What only its passphrase opens: scrypt makes a key of it, AES-256-GCM seals with that. */
import {
  createCipheriv,
  createDecipheriv,
  type DecipherGCM,
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
/** Half a second and 128 MiB for each guess. */
const COST = { N: 2 ** 17, r: 8, p: 1 }
/** As much as a backup may ask of the machine that restores it. */
const MOST_MEMORY = 1024 ** 3
const CHECK = Buffer.from('sandlot backup')

const base64 = z.string().regex(/^[A-Za-z0-9+/]+=*$/)

/** How a part was sealed; no secret. */
export const seal = z.object({ nonce: base64, tag: base64 })
export type Seal = z.infer<typeof seal>

export const sealing = z.object({
  cipher: z.literal(CIPHER),
  scrypt: z.object({ N: z.int(), r: z.int(), p: z.int(), salt: base64 }),
  /** A known text, sealed: whether a passphrase is the right one. */
  check: seal.extend({ text: base64 }),
})
type Sealing = z.infer<typeof sealing>

async function keyOf(passphrase: string, { N, r, p, salt }: Sealing['scrypt']): Promise<Buffer> {
  const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt)
  const options = { N, r, p, maxmem: MOST_MEMORY }
  // The same letters may be typed as different code points.
  return derive(passphrase.normalize('NFKC'), Buffer.from(salt, 'base64'), KEY_BYTES, options)
}

/** A new key of this passphrase. */
export async function newSealing(passphrase: string): Promise<{ key: Buffer; sealing: Sealing }> {
  const cost = { ...COST, salt: randomBytes(16).toString('base64') }
  const key = await keyOf(passphrase, cost)
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce)
  const text = Buffer.concat([cipher.update(CHECK), cipher.final()])
  const check = {
    nonce: nonce.toString('base64'),
    tag: cipher.getAuthTag().toString('base64'),
    text: text.toString('base64'),
  }
  return { key, sealing: { cipher: CIPHER, scrypt: cost, check } }
}

/** The key of a backup. Throws `BackupError('wrong_passphrase')`. */
export async function openSealing(passphrase: string, { scrypt: cost, check }: Sealing): Promise<Buffer> {
  const key = await keyOf(passphrase, cost)
  try {
    const decipher = decipherOf(key, check)
    decipher.update(Buffer.from(check.text, 'base64'))
    decipher.final()
    return key
  } catch (error) {
    throw new BackupError(
      'wrong_passphrase',
      'The passphrase is not the one that this backup was made with. Nothing was restored.',
      'Set SANDLOT_BACKUP_PASSPHRASE_FILE to the file that was used then, or type it.',
      { cause: error },
    )
  }
}

/** Seals a stream; `seal()` is known when it has ended. */
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

/** Opens what `sealed` has sealed. Throws at its end where it is not what was sealed. */
export async function* unsealed(
  key: Buffer,
  how: Seal,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const decipher = decipherOf(key, how)
  for await (const chunk of source) yield decipher.update(chunk)
  yield decipher.final()
}

function decipherOf(key: Buffer, { nonce, tag }: Seal): DecipherGCM {
  const decipher = createDecipheriv(CIPHER, key, Buffer.from(nonce, 'base64'))
  decipher.setAuthTag(Buffer.from(tag, 'base64'))
  return decipher
}
