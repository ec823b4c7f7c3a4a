import { allOf } from './all-of.ts'
import type { BackendVolume, SandboxBackend, SandboxState } from '../backend.ts'
import { checkOwner, type ContainerOptions, containersOf } from './start-container.ts'
import { type RemovalLog, removeWorkspace } from './empty-workspace.ts'
import { createGate } from '#shared/async/keyed-lock'
import { LABEL } from '../names.ts'
import type { SandboxLedger } from '../ledger.ts'
import { knownSlot } from './slots.ts'

/** With hundreds at once an engine delays some beyond their deadline. */
const REMOVALS_AT_ONCE = 8

interface Both {
  backend: SandboxBackend
  ledger: Pick<SandboxLedger, 'list'>
}

/** Parameters of a removal. */
export interface RemovalOptions extends ContainerOptions {
  log: RemovalLog
}

/** One row of an operator's list. */
interface ListedWorkspace {
  volume: string
  slot: string
  /**
   * `claimed`: a user's. `warm`: in the pool. `nobody`: neither ledger nor engine knows an owner.
   */
  owner: 'claimed' | 'warm' | 'nobody'
  userId?: string
  /** Claim, in epoch milliseconds. */
  since?: number
  container?: { id: string; name: string; state: SandboxState }
}

/** All workspaces, and slots whose volume does not exist (yet). Rejects with a `SandboxError`. */
export async function listWorkspaces({ backend, ledger }: Both): Promise<ListedWorkspace[]> {
  // The volumes first: one created in between is missing from the list, and never looks ownerless.
  const volumes = await backend.inventory.volumes.list()
  const containers = await backend.list({})
  const rows = await ledger.list()
  const names = new Set([...volumes.map(({ name }) => name), ...rows.map(({ volume }) => volume)])
  return [...names].toSorted().map((volume) => {
    const row = rows.find((candidate) => candidate.volume === volume)
    const labels = volumes.find(({ name }) => name === volume)?.labels ?? {}
    const container = containers.find((candidate) => candidate.labels[LABEL.volume] === volume)
    // A container named after its owner is adopted by their next acquire.
    const owner = row?.state === 'claimed' || (!row && container) ? 'claimed' : row ? 'warm' : 'nobody'
    return {
      volume,
      slot: row?.slot ?? labels[LABEL.slot] ?? '',
      owner,
      userId: row?.userId,
      since: row?.claimedAt,
      ...(container && { container: { id: container.id, name: container.name, state: container.state } }),
    }
  })
}

/** Number of users' sandboxes that run or are paused, without the pool's. */
export async function countAwake(both: Both): Promise<number> {
  return (await listWorkspaces(both)).filter(
    ({ owner, container }) =>
      owner === 'claimed' && (container?.state === 'running' || container?.state === 'paused'),
  ).length
}

/** Volumes without a slot in the ledger or a container: perhaps files of a lost ledger. */
export async function ownerlessVolumes(both: Both): Promise<BackendVolume[]> {
  const volumes = await both.backend.inventory.volumes.list()
  const nobodys = new Set(
    (await listWorkspaces(both)).flatMap(({ owner, volume }) => (owner === 'nobody' ? [volume] : [])),
  )
  return volumes.filter(({ name }) => nobodys.has(name))
}

/**
 * Removes these volumes for good, on a person's request, except those that have an owner by now.
 * Resolves with the removed names.
 */
export async function pruneVolumes(names: readonly string[], options: RemovalOptions): Promise<string[]> {
  const wanted = (await ownerlessVolumes(options)).filter(({ name }) => names.includes(name))
  const gate = createGate(REMOVALS_AT_ONCE)
  await allOf(wanted.map((volume) => gate(() => removeLabelled(volume, options))))
  return wanted.map(({ name }) => name)
}

/**
 * Releases the slot of a user whose volume is missing, and removes its remaining containers, on a
 * person's request. Resolves with the volume's name, or undefined where it exists.
 */
export async function forgetMissing(userId: string, options: ContainerOptions): Promise<string | undefined> {
  const { backend, ledger } = options
  const slot = await knownSlot(userId, options)
  if (!slot || (await backend.inventory.volumes.has(slot.volume))) return undefined
  const containers = await containersOf(slot.slot, options)
  checkOwner(containers, slot, options)
  for (const { id } of containers) await backend.remove(id)
  // Not the volume: it may be in restoration.
  await ledger.release(slot.slot)
  return slot.volume
}

/**
 * Removes every container and every workspace of this deployment, on a person's request. No
 * controller may be running.
 */
export async function purgeAll(options: RemovalOptions): Promise<{ containers: number; volumes: number }> {
  const { backend, ledger } = options
  const containers = await backend.list({})
  const gate = createGate(REMOVALS_AT_ONCE)
  await allOf(containers.map(({ id }) => gate(() => backend.remove(id))))
  const volumes = await backend.inventory.volumes.list()
  await allOf(volumes.map((volume) => gate(() => removeLabelled(volume, options))))
  for (const { slot } of await ledger.list()) await ledger.release(slot)
  return { containers: containers.length, volumes: volumes.length }
}

/** A volume without our labels is removed by the engine as it is. */
async function removeLabelled({ name, labels }: BackendVolume, options: RemovalOptions): Promise<void> {
  const slot = labels[LABEL.slot]
  const uid = Number(labels[LABEL.uid])
  if (slot === undefined || !Number.isInteger(uid)) return options.backend.inventory.volumes.remove(name)
  await removeWorkspace({ slot, uid, volume: name }, options, options.log)
}
