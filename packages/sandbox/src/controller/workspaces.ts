import { allOf } from './all-of.ts'
import type { BackendVolume, SandboxBackend, SandboxState } from '../backend.ts'
import { checkOwner, type ContainerOptions, containersOf } from './start-container.ts'
import { type RemovalLog, removeWorkspace } from './empty-workspace.ts'
import { createGate } from '#shared/async/keyed-lock'
import { LABEL } from '../names.ts'
import type { SandboxLedger } from '../ledger.ts'
import { knownSlot } from './slots.ts'

/** An engine that is asked for hundreds at once lets some of them wait beyond their deadline. */
const REMOVALS_AT_ONCE = 8

interface Both {
  backend: SandboxBackend
  ledger: Pick<SandboxLedger, 'list'>
}

/** What the removal of workspaces needs. */
export interface RemovalOptions extends ContainerOptions {
  log: RemovalLog
}

/** A workspace as an operator sees it. */
interface ListedWorkspace {
  volume: string
  slot: string
  /**
   * `claimed`: a user's. `warm`: in the pool. `nobody`: neither ledger nor engine knows
   * whose it is.
   */
  owner: 'claimed' | 'warm' | 'nobody'
  userId?: string
  /** Epoch milliseconds: when it became this user's. */
  since?: number
  container?: { id: string; name: string; state: SandboxState }
}

/**
 * Every workspace there is, and slots whose volume is not there (yet). Rejects with a
 * `SandboxError`.
 */
export async function listWorkspaces({ backend, ledger }: Both): Promise<ListedWorkspace[]> {
  // The volumes first: what is made meanwhile is missing from the list, and never looks ownerless.
  const volumes = await backend.inventory.volumes.list()
  const containers = await backend.list({})
  const rows = await ledger.list()
  const names = new Set([...volumes.map(({ name }) => name), ...rows.map(({ volume }) => volume)])
  return [...names].toSorted().map((volume) => {
    const row = rows.find((candidate) => candidate.volume === volume)
    const labels = volumes.find(({ name }) => name === volume)?.labels ?? {}
    const container = containers.find((candidate) => candidate.labels[LABEL.volume] === volume)
    // A container that is named after its owner is adopted by their next acquire.
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

/** How many people’s sandboxes run or are paused, without the pool’s. */
export async function countAwake(both: Both): Promise<number> {
  return (await listWorkspaces(both)).filter(
    ({ owner, container }) =>
      owner === 'claimed' && (container?.state === 'running' || container?.state === 'paused'),
  ).length
}

/**
 * Volumes that no slot of the ledger and no container names: files of a ledger that was lost,
 * perhaps.
 */
export async function ownerlessVolumes(both: Both): Promise<BackendVolume[]> {
  const volumes = await both.backend.inventory.volumes.list()
  const nobodys = new Set(
    (await listWorkspaces(both)).flatMap(({ owner, volume }) => (owner === 'nobody' ? [volume] : [])),
  )
  return volumes.filter(({ name }) => nobodys.has(name))
}

/**
 * Remove these volumes for good, on the word of a person. One that has an owner by now is left out.
 * Resolves with the names that were removed.
 */
export async function pruneVolumes(names: readonly string[], options: RemovalOptions): Promise<string[]> {
  const wanted = (await ownerlessVolumes(options)).filter(({ name }) => names.includes(name))
  const gate = createGate(REMOVALS_AT_ONCE)
  await allOf(wanted.map((volume) => gate(() => removeLabelled(volume, options))))
  return wanted.map(({ name }) => name)
}

/**
 * Forget the slot of a user whose volume is missing, and remove the containers that are left of it,
 * on the word of a person. Resolves with the name of the volume, or undefined where it is there.
 */
export async function forgetMissing(userId: string, options: ContainerOptions): Promise<string | undefined> {
  const { backend, ledger } = options
  const slot = await knownSlot(userId, options)
  if (!slot || (await backend.inventory.volumes.has(slot.volume))) return undefined
  const containers = await containersOf(slot.slot, options)
  checkOwner(containers, slot, options)
  for (const { id } of containers) await backend.remove(id)
  // Not the volume: it may be restored just now.
  await ledger.release(slot.slot)
  return slot.volume
}

/**
 * Remove every container and every workspace of this deployment, on the word of a person. No
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

/** A volume without our labels is left to the engine as it is. */
async function removeLabelled({ name, labels }: BackendVolume, options: RemovalOptions): Promise<void> {
  const slot = labels[LABEL.slot]
  const uid = Number(labels[LABEL.uid])
  if (slot === undefined || !Number.isInteger(uid)) return options.backend.inventory.volumes.remove(name)
  await removeWorkspace({ slot, uid, volume: name }, options, options.log)
}
