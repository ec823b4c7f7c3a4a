import type { BackendSandbox } from '../backend.ts'
import { type ContainerOptions, checkOwner, containersOf, ownerOf } from './start-container.ts'
import { LABEL, parseName } from '../names.ts'
import type { LedgerSlot } from '../ledger.ts'
import type { SharedEngine } from './shared-engine.ts'
import { generation } from './slots.ts'

interface ReconcileOptions extends ContainerOptions {
  /**
   * Milliseconds for which something must be seen repeatedly before it is removed. Default 120,000.
   */
  graceMs?: number
  /** Work on a user's containers happens under this lock. */
  locked: (userId: string, work: () => Promise<void>) => Promise<void>
  /** This controller is creating the slot's container, which may take longer than the grace. */
  isBeingMade: (slot: string) => boolean
  share: SharedEngine
  log: (message: string, details: { slot: string; error?: unknown }) => void
}

/** One observation of engine and ledger. */
export interface Seen {
  rows: LedgerSlot[]
  containers: BackendSandbox[]
  /** Just before it, on the clock of `performance.now()`. */
  at: number
}

interface Reconciler {
  /** Compares engine and ledger once and repairs. Rejects when either does not answer. */
  pass(): Promise<Seen>
  /** This owner tag was on the engine at the last pass. True for all before the first pass. */
  hasContainer(owner: string): boolean
}

/**
 * Reconciles engine and ledger: the engine is the truth about what exists, the ledger about its
 * owner. A container is removed only when both agree that it has no owner, and a volume never,
 * except that of a condemned slot.
 */
export function createReconciler(options: ReconcileOptions): Reconciler {
  const { backend, ledger, deploymentId, share } = options
  const graceMs = options.graceMs ?? 120_000
  /** First sighting of each unexplained container or slot. */
  let since = new Map<string, number>()
  let owners: Set<string> | undefined
  return {
    async pass() {
      // The ledger first: a row that is new by then has no container yet, and a container has its
      // row before it.
      const at = performance.now()
      const rows = await ledger.list()
      const containers = await backend.list({})
      const named = containers.map((container) => ({
        container,
        name: parseName(deploymentId, container.name),
      }))
      owners = new Set(named.flatMap(({ name }) => (name?.kind === 'claimed' ? [name.owner] : [])))
      const before = since
      since = new Map()
      const leads = share.leads()
      const isOld = (key: string): boolean => {
        const first = before.get(key) ?? at
        since.set(key, first)
        return performance.now() - first >= graceMs
      }
      const known = new Set(rows.map(({ slot }) => slot))
      for (const { container, name } of named) {
        if (leads && name?.kind === 'pool' && !known.has(name.slot) && isOld(container.id))
          await logged(name.slot, options, () => removeStray(container, options))
      }
      for (const row of rows) {
        const own = containers.filter(({ labels }) => labels[LABEL.slot] === row.slot)
        const repair = repairOf(row, own, options, (key) => leads && isOld(key))
        if (repair) await logged(row.slot, options, () => repair(row, options))
      }
      return { rows, containers, at }
    },
    hasContainer: (owner) => owners === undefined || owners.has(owner),
  }
}

type Repair = (row: LedgerSlot, options: ReconcileOptions) => Promise<void>

/** `isDue`: this controller may remove what has been seen for so long. */
function repairOf(
  row: LedgerSlot,
  own: readonly BackendSandbox[],
  { deploymentId, share }: ReconcileOptions,
  isDue: (key: string) => boolean,
): Repair | undefined {
  if (row.state === 'condemned') return isDue(row.slot) ? finishRemoval : undefined
  if (row.state === 'warm') return own.length === 0 && isDue(row.slot) ? releaseUnmade : undefined
  const unfinished = own.length > 1 || own.some((container) => generation(container, deploymentId) === 0)
  const isOurs = row.userId !== undefined && share.owns(row.userId)
  return isOurs && unfinished ? finishClaim : undefined
}

async function logged(slot: string, { log }: ReconcileOptions, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    log('a slot could not be reconciled', { slot, error })
  }
}

/** Removes a container without an owner. Its volume stays: a missing row is no proof. */
async function removeStray(container: BackendSandbox, options: ReconcileOptions): Promise<void> {
  const { backend, ledger, deploymentId } = options
  const slot = container.labels[LABEL.slot] ?? ''
  if ((await ledger.list()).some((row) => row.slot === slot)) return
  const [now] = (await containersOf(slot, options)).filter(({ id }) => id === container.id)
  if (!now || parseName(deploymentId, now.name)?.kind !== 'pool') return
  await backend.remove(container.id)
  options.log('removed a container without an owner; its volume is kept', { slot })
}

/** Finishes an interrupted removal of a slot that was never claimed. */
async function finishRemoval(row: LedgerSlot, options: ReconcileOptions): Promise<void> {
  const { backend, ledger, deploymentId } = options
  const containers = await containersOf(row.slot, options)
  if (containers.some(({ name }) => parseName(deploymentId, name)?.kind !== 'pool')) return
  for (const { id } of containers) await backend.remove(id)
  await backend.inventory.volumes.remove(row.volume)
  await ledger.release(row.slot)
}

/**
 * Finishes a claim interrupted before its rename, or a replacement before the older container was
 * removed.
 */
async function finishClaim(row: LedgerSlot, options: ReconcileOptions): Promise<void> {
  const { backend, ledger, deploymentId } = options
  const { userId } = row
  if (userId === undefined) return
  await options.locked(userId, async () => {
    const current = await ledger.find(userId)
    const containers = await containersOf(row.slot, options)
    checkOwner(containers, row, options)
    const [newest, ...older] = containers.filter(({ state }) => state !== 'removing')
    if (current?.slot !== row.slot || !newest) return
    if (generation(newest, deploymentId) === 0)
      await backend.claim(newest.id, ownerOf(row, await ledger.nextGeneration(row.slot, 0), options))
    for (const { id } of older) await backend.remove(id)
  })
}

/** Releases a slot whose container was never created. A volume of it is listed as ownerless. */
async function releaseUnmade(row: LedgerSlot, options: ReconcileOptions): Promise<void> {
  if ((await containersOf(row.slot, options)).length > 0 || options.isBeingMade(row.slot)) return
  if (await options.ledger.condemn(row.slot)) await options.ledger.release(row.slot)
}

/** The newest container of each claimed slot, paused or running, with its row. */
export function claimedContainers(
  { rows, containers }: Seen,
  deploymentId: string,
): [LedgerSlot, BackendSandbox][] {
  const newest = new Map<string, BackendSandbox>()
  for (const container of containers) {
    const slot = container.labels[LABEL.slot] ?? ''
    const other = newest.get(slot)
    if (!other || generation(container, deploymentId) > generation(other, deploymentId))
      newest.set(slot, container)
  }
  return rows.flatMap((row): [LedgerSlot, BackendSandbox][] => {
    const container = row.state === 'claimed' ? newest.get(row.slot) : undefined
    return container && generation(container, deploymentId) > 0 ? [[row, container]] : []
  })
}
