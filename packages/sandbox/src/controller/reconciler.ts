import type { BackendSandbox } from '../backend.ts'
import { type ContainerOptions, checkOwner, containersOf, ownerOf } from './start-container.ts'
import { LABEL, parseName } from '../names.ts'
import type { LedgerSlot } from '../ledger.ts'
import type { SharedEngine } from './shared-engine.ts'
import { generation } from './slots.ts'

interface ReconcileOptions extends ContainerOptions {
  /**
   * How long something must have been in the way, seen again and again, before it is removed.
   * Default 120,000.
   */
  graceMs?: number
  /** Work on a user's containers happens under this lock. */
  locked: (userId: string, work: () => Promise<void>) => Promise<void>
  /**
   * Whether this controller is making the container of this slot, which may take longer than the
   * grace.
   */
  isBeingMade: (slot: string) => boolean
  share: SharedEngine
  log: (message: string, details: { slot: string; error?: unknown }) => void
}

/** What one look found; for those who act on it. */
export interface Seen {
  rows: LedgerSlot[]
  containers: BackendSandbox[]
  /** Just before, on the clock of `performance.now()`. */
  at: number
}

interface Reconciler {
  /**
   * One look at engine and ledger, and everything done that follows from it. Rejects when either
   * does not answer.
   */
  pass(): Promise<Seen>
  /**
   * Whether this owner tag was on the engine at the last look; before the first look every one was.
   */
  hasContainer(owner: string): boolean
}

/**
 * Engine and ledger brought together: the engine is the truth about what exists, the ledger about
 * whose it is. A container is removed only when both agree that it has no owner, and a volume
 * never, except one whose slot is condemned.
 */
export function createReconciler(options: ReconcileOptions): Reconciler {
  const { backend, ledger, deploymentId, share } = options
  const graceMs = options.graceMs ?? 120_000
  /** Since when each unexplained thing is there. */
  let since = new Map<string, number>()
  let owners: Set<string> | undefined

  async function one(slot: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      options.log('a slot could not be reconciled', { slot, error })
    }
  }

  /** Removed while nothing says whose it is; the volume stays, because no row is no proof. */
  async function removeStray(container: BackendSandbox): Promise<void> {
    const slot = container.labels[LABEL.slot] ?? ''
    if ((await ledger.list()).some((row) => row.slot === slot)) return
    const [now] = (await containersOf(slot, options)).filter(({ id }) => id === container.id)
    if (!now || parseName(deploymentId, now.name)?.kind !== 'pool') return
    await backend.remove(container.id)
    options.log('removed a container without an owner; its volume is kept', { slot })
  }

  /** A removal of a slot that was never claimed, cut off half-way. */
  async function finishRemoval(row: LedgerSlot): Promise<void> {
    const containers = await containersOf(row.slot, options)
    if (containers.some(({ name }) => parseName(deploymentId, name)?.kind !== 'pool')) return
    for (const { id } of containers) await backend.remove(id)
    await backend.inventory.volumes.remove(row.volume)
    await ledger.release(row.slot)
  }

  /**
   * A claim cut off before its rename, or a replacement cut off before the older container was
   * removed.
   */
  async function finishClaim(row: LedgerSlot): Promise<void> {
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

  /**
   * A birth cut off before its container. The volume, if there is one, is listed as ownerless.
   */
  async function releaseUnmade(row: LedgerSlot): Promise<void> {
    if ((await containersOf(row.slot, options)).length > 0 || options.isBeingMade(row.slot)) return
    if (await ledger.condemn(row.slot)) await ledger.release(row.slot)
  }

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
          await one(name.slot, () => removeStray(container))
      }
      for (const row of rows) {
        const own = containers.filter(({ labels }) => labels[LABEL.slot] === row.slot)
        if (leads && row.state === 'condemned' && isOld(row.slot))
          await one(row.slot, () => finishRemoval(row))
        if (leads && row.state === 'warm' && own.length === 0 && isOld(row.slot))
          await one(row.slot, () => releaseUnmade(row))
        const unfinished =
          own.length > 1 || own.some((container) => generation(container, deploymentId) === 0)
        const isOurs = row.userId !== undefined && share.owns(row.userId)
        if (row.state === 'claimed' && isOurs && unfinished) await one(row.slot, () => finishClaim(row))
      }
      return { rows, containers, at }
    },
    hasContainer: (owner) => owners === undefined || owners.has(owner),
  }
}

/** Paused or running containers of claimed slots, the newest of each, with whose they are. */
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
