import type { BackendSandbox, SandboxBackend } from '../backend.ts'
import { SandboxError } from '../errors.ts'
import { freeUid, LABEL, newSlotName, ownerTag, parseName, poolName } from '../names.ts'
import type { LedgerSlot, SandboxLedger } from '../ledger.ts'

interface SlotsOptions {
  backend: SandboxBackend
  ledger: SandboxLedger
  deploymentId: string
  deploymentKey: Uint8Array
}

/**
 * This user's slot: from the ledger, from a container on the engine (a ledger was lost), or a new
 * one, recorded before anything of it exists on the engine.
 */
export async function slotFor(userId: string, options: SlotsOptions): Promise<LedgerSlot> {
  return find(userId, options, (containers) => fresh(userId, containers, options))
}

/**
 * `slotFor` without creating one: undefined when there is none. A slot known only to the engine is
 * added to the ledger.
 */
export async function knownSlot(userId: string, options: SlotsOptions): Promise<LedgerSlot | undefined> {
  return find(userId, options, () => Promise.resolve(undefined))
}

async function find<None extends LedgerSlot | undefined>(
  userId: string,
  options: SlotsOptions,
  otherwise: (containers: BackendSandbox[]) => Promise<None>,
): Promise<LedgerSlot | None> {
  const { backend, ledger } = options
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const known = await ledger.find(userId)
    if (known) return known
    const containers = await backend.list({})
    const theirs = adoptable(userId, containers, options)
    try {
      // An older ledger lists it as warm; the engine is right.
      if (theirs && (await isWarm(theirs.slot, ledger))) return await ledger.claim(theirs.slot, userId)
      const slot = theirs ?? (await otherwise(containers))
      if (slot !== undefined) await ledger.add(slot)
      return slot
    } catch (error) {
      // Another controller was first, with this user or this uid: try again.
      if (!(error instanceof SandboxError && error.code === 'exists')) throw error
    }
  }
  throw new SandboxError(
    'ledger',
    'The sandbox ledger and the engine disagree about the owner of a slot. Run "sandlot doctor".',
  )
}

async function isWarm(slot: string, ledger: SandboxLedger): Promise<boolean> {
  return (await ledger.list()).some((row) => row.slot === slot && row.state === 'warm')
}

/** The owner is in the container's name, so a user finds their files again without a ledger. */
function adoptable(
  userId: string,
  containers: BackendSandbox[],
  options: SlotsOptions,
): LedgerSlot | undefined {
  const owner = ownerTag(options.deploymentKey, userId)
  const theirs = containers
    .map((container) => ({ container, name: parseName(options.deploymentId, container.name) }))
    .filter(({ name }) => name?.kind === 'claimed' && name.owner === owner)
    .toSorted(
      (a, b) => generation(b.container, options.deploymentId) - generation(a.container, options.deploymentId),
    )
  const newest = theirs[0]
  const uid = Number(newest?.container.labels[LABEL.uid])
  const volume = newest?.container.labels[LABEL.volume]
  if (!newest?.name || !volume || !Number.isInteger(uid)) return undefined
  const now = Date.now()
  return {
    slot: newest.name.slot,
    state: 'claimed',
    userId,
    uid,
    volume,
    generation: generation(newest.container, options.deploymentId),
    createdAt: now,
    claimedAt: now,
  }
}

async function fresh(
  userId: string,
  containers: BackendSandbox[],
  options: SlotsOptions,
): Promise<LedgerSlot> {
  const slot = await newSlot(containers, options)
  return { ...slot, state: 'claimed', userId, claimedAt: slot.createdAt }
}

/**
 * A new warm slot, unknown to ledger and engine. A uid is reserved as long as its volume exists.
 */
export async function newSlot(
  containers: BackendSandbox[],
  options: Pick<SlotsOptions, 'backend' | 'ledger' | 'deploymentId'>,
): Promise<LedgerSlot> {
  const [slots, volumes] = await Promise.all([
    options.ledger.list(),
    options.backend.inventory.volumes.list(),
  ])
  const taken = new Set([
    ...slots.map((slot) => slot.uid),
    ...[...containers, ...volumes].map(({ labels }) => Number(labels[LABEL.uid])),
  ])
  const uid = freeUid(taken)
  if (uid === undefined)
    throw new SandboxError(
      'limit_reached',
      'Every sandbox uid is in use. Remove unused workspaces with "sandlot sandbox prune".',
    )
  const slot = newSlotName()
  const volume = poolName(options.deploymentId, slot)
  return { slot, state: 'warm', uid, volume, generation: 0, createdAt: Date.now() }
}

/** The n in a container's name; 0 for a pool name or a foreign one. */
export function generation(container: BackendSandbox, deploymentId: string): number {
  const name = parseName(deploymentId, container.name)
  return name?.kind === 'claimed' ? name.generation : 0
}
