/**
 * A new key for people's secrets. Every step is durable before the next begins, and after each of them every secret opens with
 * the keys that are stored: the new key is written beside the old ones, everything is sealed again, the old ones go.
 * Whatever ends it in between, beginning again goes on where it was.
 */
import { randomBytes } from 'node:crypto'
import type { SecretRows } from '@sandlot/storage/sessions/secrets'
import { type SealingKeys, sealingKeys, writeSealingKeys } from './sealing-keys.ts'
import { UserSecrets } from './user-secrets.ts'
import { createVault } from './vault.ts'

export interface Rotated {
  /** Secrets that were sealed again. */
  resealed: number
  /** `user/name` of those that no key opens; they stay as they are. */
  lost: string[]
}

/** `key_written`, then `resealed` for each secret, then `old_keys_gone`. */
export type RotationStep = 'key_written' | 'resealed' | 'old_keys_gone'

/** Only where no agent runs: one would go on sealing with the old key. Throws what `sealingKeys` and the store throw. */
export async function* rotateKeys(
  dataFolder: string,
  deploymentKey: Uint8Array,
  rows: SecretRows,
): AsyncGenerator<RotationStep, Rotated> {
  const before = sealingKeys(dataFolder, deploymentKey)
  // More than one: an earlier rotation was cut off. Its key is the new one.
  const keys: SealingKeys = before.length > 1 ? before : [new Uint8Array(randomBytes(32)), ...before]
  writeSealingKeys(dataFolder, keys)
  yield 'key_written'
  const secrets = new UserSecrets({ rows, vault: createVault(keys), hide: () => undefined, now: Date.now })
  const resealing = secrets.reseal()
  let next = await resealing.next()
  for (; next.done !== true; next = await resealing.next()) yield 'resealed'
  writeSealingKeys(dataFolder, [keys[0]])
  yield 'old_keys_gone'
  return next.value
}
