import type {
  BackendSandbox,
  SandboxBackend,
  SandboxLimits,
  SandboxOwner,
  SandboxProfile,
  SandboxSpec,
} from '../backend.ts'
import { open, type OpeningOptions, type OpenSandbox } from './connect-opened.ts'
import { SandboxError, workspaceMissing } from '../errors.ts'
import { claimedName, LABEL, ownerTag, parseName, poolName, slotLabels } from '../names.ts'
import type { LedgerSlot, SandboxLedger } from '../ledger.ts'
import { generation } from './slots.ts'

export interface ContainerOptions extends OpeningOptions {
  ledger: SandboxLedger
  deploymentId: string
  image: string
  limits: SandboxLimits
  runtime?: string
  /**
   * System call filter by user; without an id for an unclaimed sandbox. Default `default` for all.
   */
  profileFor?: (userId: string | undefined) => SandboxProfile
  /**
   * Slot → newest generation seen by this controller: the name of a container that an operator
   * removed is used up all the same. Default: only the engine's containers count.
   */
  seen?: Map<string, number>
}

/** A sandbox that is silent for so long may have ended before its stream was opened. */
const SILENT_MS = 1_000

/**
 * Brings this slot's container to running from any state, and calls `connect`: running as it is,
 * paused → resume, stopped → start (in a new container if the spec has changed), missing → a new
 * container for the same volume, which must exist. A container that disappears in between is
 * retried twice. Rejects with a `SandboxError`.
 */
export async function startContainer<T>(
  slot: LedgerSlot,
  options: ContainerOptions,
  signal: AbortSignal,
  connect: (open: OpenSandbox) => Promise<T>,
): Promise<T> {
  let failure: SandboxError | undefined
  const tried: Tried = { generation: 0 }
  for (let attempt = 0; attempt < 3; attempt += 1) {
    if (signal.aborted) throw new SandboxError('cancelled', 'Stopped waiting for the sandbox.')
    let container: BackendSandbox | undefined
    try {
      container = await current(slot, options, signal, tried)
      const opened = await open(container, options.backend, signal)
      const silent = setTimeout(() => void endIfStopped(opened, options.backend), SILENT_MS)
      try {
        return await connect(opened)
      } catch (error) {
        opened.stream.destroy()
        throw error
      } finally {
        clearTimeout(silent)
      }
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error
      failure = error
      // Removed or stopped by someone else, or the name is taken by an invisible container.
      if (error.code === 'sandbox_lost' || error.code === 'exists') {
        if (attempt === 1 && container) await endUnreachable(container.id, options.backend)
        continue
      }
      // The engine reports it as running, but something else may have frozen it.
      if (
        error.code === 'timeout' &&
        container &&
        attempt === 0 &&
        (await pauseAndResume(container, options))
      )
        continue
      // A supervisor of another version, from before an upgrade: its commands are unreachable.
      if (error.code !== 'protocol' || !container || !(await differs(container, slot, options, signal)))
        throw error
      await options.backend.stop(container.id)
    }
  }
  throw failure ?? new SandboxError('sandbox_lost', 'The sandbox could not be started.')
}

/**
 * A stream to a container that ended just before it was opened is silent until the next start.
 * Destroying it makes `connect` reject. When the engine does not know, the handshake's own deadline
 * applies.
 */
async function endIfStopped({ id, stream }: OpenSandbox, backend: SandboxBackend): Promise<void> {
  const state = await backend.inventory.inspect(id).then(
    (found) => found?.state ?? 'absent',
    () => 'unknown',
  )
  if (state !== 'running' && state !== 'unknown') stream.destroy()
}

/**
 * After a crash of the engine it may close every stream to a running container at once: only a
 * restart helps. Seen with live-restore on 20.10. A container that has stopped is left to the next
 * attempt.
 */
async function endUnreachable(id: string, backend: SandboxBackend): Promise<void> {
  if ((await backend.inventory.inspect(id))?.state === 'running') await backend.stop(id)
}

/** All containers of a slot, the newest first. */
export async function containersOf(
  slot: string,
  options: Pick<ContainerOptions, 'backend' | 'deploymentId'>,
): Promise<BackendSandbox[]> {
  const found = await options.backend.list({ [LABEL.slot]: slot })
  return found.toSorted((a, b) => generation(b, options.deploymentId) - generation(a, options.deploymentId))
}

/**
 * Second barrier after the ledger: the engine has the owner in a container's name, so a corrupt
 * ledger gives no user the files of another. Throws `ledger` and changes nothing.
 */
export function checkOwner(
  containers: readonly BackendSandbox[],
  slot: LedgerSlot,
  options: Pick<ContainerOptions, 'deploymentId' | 'deploymentKey'>,
): void {
  if (slot.userId === undefined) return
  const owner = ownerTag(options.deploymentKey, slot.userId)
  for (const { name } of containers) {
    const said = parseName(options.deploymentId, name)
    if (said?.slot === slot.slot && (said.kind === 'pool' || said.owner === owner)) continue
    throw new SandboxError(
      'ledger',
      `The ledger gives slot ${slot.slot} to this user, but its container ${name} is not theirs. Nothing was touched: restore the ledger, or the deployment key that the container was named with.`,
    )
  }
}

/** Newest generation that could not be created, because its name is taken by something else. */
interface Tried {
  generation: number
}

/**
 * The slot's container, created or replaced where necessary; older ones are removed. Listed again
 * after a creation: of two created at once every controller keeps the newest, and only then is it
 * started.
 */
async function current(
  slot: LedgerSlot,
  options: ContainerOptions,
  signal: AbortSignal,
  tried: Tried,
): Promise<BackendSandbox> {
  const made = new Set<string>()
  for (;;) {
    const containers = await containersOf(slot.slot, options)
    checkOwner(containers, slot, options)
    note(containers, slot, options)
    const newest = containers.find((container) => container.state !== 'removing')
    const keep =
      newest && (made.has(newest.id) || !(await isOutdated(newest, slot, options, signal)))
        ? newest
        : undefined
    // The new one is created before the old one is removed, so the engine always knows the owner.
    if (!keep) {
      if (signal.aborted) throw new SandboxError('cancelled', 'Stopped waiting for the sandbox.')
      made.add((await create(slot, containers, options, signal, tried)).id)
      continue
    }
    if (!made.has(keep.id) && (await isWithoutVolume(keep, slot, options.backend, signal)))
      throw workspaceMissing(slot.volume)
    for (const container of containers) {
      if (container.id !== keep.id && container.state !== 'removing')
        await options.backend.remove(container.id)
    }
    return owned(keep, slot, options)
  }
}

function note(containers: readonly BackendSandbox[], { slot }: LedgerSlot, options: ContainerOptions): void {
  const newest = Math.max(0, ...containers.map((container) => generation(container, options.deploymentId)))
  if (newest > (options.seen?.get(slot) ?? 0)) options.seen?.set(slot, newest)
}

/**
 * Finishes a claim interrupted between ledger and engine: the name shows the owner before a command
 * runs.
 */
async function owned(
  container: BackendSandbox,
  slot: LedgerSlot,
  options: ContainerOptions,
): Promise<BackendSandbox> {
  if (generation(container, options.deploymentId) > 0) return container
  const owner = ownerOf(slot, await options.ledger.nextGeneration(slot.slot, 0), options)
  await options.backend.claim(container.id, owner)
  return { ...container, name: claimedName(options.deploymentId, slot.slot, owner.tag, owner.generation) }
}

async function pauseAndResume(container: BackendSandbox, { backend }: ContainerOptions): Promise<boolean> {
  if (container.state !== 'running' || !(await backend.inventory.capabilities()).pause) return false
  try {
    await backend.pause(container.id)
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    // A running container that cannot be paused is frozen already, and only its end thaws it.
    await backend.stop(container.id)
    return true
  }
  await backend.resume(container.id)
  return true
}

const isIdle = ({ state }: BackendSandbox): boolean => state === 'stopped' || state === 'created'

/** An engine would start it with an empty volume. A running one holds its own. */
export async function isWithoutVolume(
  container: BackendSandbox,
  { volume }: Pick<LedgerSlot, 'volume'>,
  { inventory }: Pick<SandboxBackend, 'inventory'>,
  signal?: AbortSignal,
): Promise<boolean> {
  return isIdle(container) && !(await inventory.volumes.has(volume, signal))
}

/** Only an idle sandbox moves to a new image. */
async function isOutdated(
  container: BackendSandbox,
  slot: LedgerSlot,
  options: ContainerOptions,
  signal: AbortSignal,
): Promise<boolean> {
  return isIdle(container) && (await differs(container, slot, options, signal))
}

/** True when a container created now would differ. */
export async function differs(
  container: BackendSandbox,
  slot: LedgerSlot,
  options: ContainerOptions,
  signal?: AbortSignal,
): Promise<boolean> {
  const now = await options.backend.inventory.fingerprint?.(specOf(slot, container.name, options), signal)
  return now !== undefined && now !== container.labels[LABEL.spec]
}

/**
 * The ledger assigns the generation, so another controller that creates one at the same time
 * creates the same one, under this name.
 */
async function create(
  slot: LedgerSlot,
  existing: BackendSandbox[],
  options: ContainerOptions,
  signal: AbortSignal,
  tried: Tried,
): Promise<BackendSandbox> {
  const seen = existing.map((container) => generation(container, options.deploymentId))
  // Before the ledger records a container: a crash in between leaves the slot without one.
  if (slot.generation === 0 && existing.length === 0)
    await options.backend.inventory.volumes.ensure(
      specOf(slot, poolName(options.deploymentId, slot.slot), options),
      signal,
    )
  const after = Math.max(tried.generation, options.seen?.get(slot.slot) ?? 0, ...seen)
  const next = await options.ledger.nextGeneration(slot.slot, after)
  const name = claimedName(options.deploymentId, slot.slot, ownerOf(slot, next, options).tag, next)
  try {
    return await options.backend.create({ ...specOf(slot, name, options), hasWorkspace: true }, signal)
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'exists') tried.generation = next
    throw error
  }
}

/**
 * The owner of the n-th container of a claimed slot. Throws `ledger` when the slot is not claimed.
 */
export function ownerOf(
  slot: LedgerSlot,
  generation: number,
  options: Pick<ContainerOptions, 'deploymentKey'>,
): SandboxOwner {
  if (slot.userId === undefined) throw new SandboxError('ledger', `Slot ${slot.slot} is not claimed.`)
  return { tag: ownerTag(options.deploymentKey, slot.userId), generation }
}

/** Current spec of this slot's container. */
export function specOf(slot: LedgerSlot, name: string, options: ContainerOptions): SandboxSpec {
  const profile = options.profileFor?.(slot.userId) ?? 'default'
  return {
    name,
    slot: slot.slot,
    uid: slot.uid,
    volume: slot.volume,
    image: options.image,
    limits: options.limits,
    labels: slotLabels(options.deploymentId, slot),
    runtime: options.runtime,
    ...(profile === 'default' ? {} : { profile }),
  }
}
