import { hkdfSync } from 'node:crypto'

/**
 * The key of one sandbox's sbxd: HKDF-SHA256 of the deployment key with the container's id, 32
 * bytes. Known before the container starts, so nothing is stored.
 */
export function deriveSandboxKey(deploymentKey: Uint8Array, containerId: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', deploymentKey, 'sandlot sbxd', containerId, 32))
}

/**
 * Key that seals session state for the next sbxd: 32 bytes, the same for every container of this
 * slot's volume. sbxd receives it with its own key; commands never see it.
 */
export function deriveStateKey(deploymentKey: Uint8Array, slot: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', deploymentKey, 'sandlot shell state', slot, 32))
}
