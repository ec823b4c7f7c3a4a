/**
 * The keys that seal people's secrets: `secrets.json` in the folder of keys, newest first. Until
 * they are rotated for the first time there is no such file, and the deployment's own key seals.
 * While a rotation is under way the old keys are there too, so that whatever has not been sealed
 * again opens.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { randomBytes } from 'node:crypto'
import type { SecretRows } from '@sandlot/storage/people/secrets'
import { hasCode } from '@sandlot/shared/base/errors'
import { UserSecrets } from './user-secrets.ts'
import { createVault } from './vault.ts'

/** The one that seals, then those that only open. 32 bytes each. */
type SealingKeys = readonly [Uint8Array, ...Uint8Array[]]

const stored = z.strictObject({ keys: z.array(z.base64().length(44)).min(1) })

function pathOf(keysFolder: string): string {
  return join(keysFolder, 'secrets.json')
}

/**
 * Throws when the file cannot be read or is damaged; it is never replaced, since that would lose
 * every secret.
 */
export function sealingKeys(keysFolder: string, deploymentKey: Uint8Array): SealingKeys {
  const path = pathOf(keysFolder)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    if (hasCode(cause, 'ENOENT')) return [deploymentKey]
    throw new Error(`The keys of people's secrets cannot be read: ${path}.`, { cause })
  }
  const parsed = z
    .string()
    .transform((json, ctx): unknown => {
      try {
        return JSON.parse(json)
      } catch {
        ctx.addIssue({ code: 'custom', message: 'not JSON' })
        return z.NEVER
      }
    })
    .pipe(stored)
    .safeParse(text)
  const [first, ...rest] = (parsed.data?.keys ?? []).map((key) => new Uint8Array(Buffer.from(key, 'base64')))
  if (first === undefined)
    throw new Error(`${path} is damaged. Restore it from a backup: without it no secret can be opened.`)
  return [first, ...rest]
}

/** Durable when it returns; at any moment the file holds either the earlier keys or these. */
export function writeSealingKeys(keysFolder: string, keys: SealingKeys): void {
  const path = pathOf(keysFolder)
  const draft = `${path}.new`
  const file = openSync(draft, 'w', 0o600)
  try {
    writeFileSync(
      file,
      `${JSON.stringify({ keys: keys.map((key) => Buffer.from(key).toString('base64')) })}\n`,
    )
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(draft, path)
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

export interface Rotated {
  /** Secrets that were sealed again. */
  resealed: number
  /** `user/name` of those that no key opens; they stay as they are. */
  lost: string[]
}

/** `key_written`, then `resealed` for each secret, then `old_keys_gone`. */
type RotationStep = 'key_written' | 'resealed' | 'old_keys_gone'

/**
 * Gives people's secrets a new key. Each step is durable before the next begins, and after each of
 * them every secret opens with the stored keys: the new key is written beside the old ones,
 * everything is sealed again, the old ones are removed. Repeating it after a crash continues where
 * it was. Call it only where no agent runs, which would still seal with the old key. `changed` is
 * called when the new key is stored, before anything is sealed with it. Throws what `sealingKeys`
 * and the store throw.
 */
export async function* rotateKeys(
  keysFolder: string,
  deploymentKey: Uint8Array,
  rows: SecretRows,
  changed: (keys: SealingKeys) => Promise<void> = () => Promise.resolve(),
): AsyncGenerator<RotationStep, Rotated> {
  const before = sealingKeys(keysFolder, deploymentKey)
  // More than one: an earlier rotation was cut off. Its key is the new one.
  const keys: SealingKeys = before.length > 1 ? before : [new Uint8Array(randomBytes(32)), ...before]
  writeSealingKeys(keysFolder, keys)
  await changed(keys)
  yield 'key_written'
  const secrets = new UserSecrets({ rows, vault: createVault(keys), redact: () => undefined, now: Date.now })
  const resealing = secrets.reseal()
  let next = await resealing.next()
  for (; next.done !== true; next = await resealing.next()) yield 'resealed'
  writeSealingKeys(keysFolder, [keys[0]])
  yield 'old_keys_gone'
  return next.value
}
