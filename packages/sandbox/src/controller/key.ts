import { hkdfSync } from 'node:crypto'

/**
 * The key of one sandbox's sbxd: HKDF-SHA256 of the deployment key with `OpenedSandbox.keyId`, 32
 * bytes. Nothing is stored.
 */
export function deriveSandboxKey(deploymentKey: Uint8Array, keyId: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', deploymentKey, 'sandlot sbxd', keyId, 32))
}

/**
 * Key that seals session state for the next sbxd: 32 bytes, the same for every container of this
 * slot's volume. sbxd receives it with its own key; commands never see it.
 */
export function deriveStateKey(deploymentKey: Uint8Array, slot: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', deploymentKey, 'sandlot shell state', slot, 32))
}
