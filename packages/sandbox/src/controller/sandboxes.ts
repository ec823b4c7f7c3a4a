import { setTimeout as sleep } from 'node:timers/promises'

import { allOf } from './all-of.ts'
import type {
  BackendSandbox,
  SandboxBackend,
  SandboxLimits,
  SandboxProfile,
  SandboxState,
} from '../backend.ts'
import { containersOf, type ContainerOptions } from './start-container.ts'
import type { Patience, StartStep } from './connecting.ts'
import { createEgress, type EgressOptions } from '../egress/egress.ts'
import { SandboxError } from '../errors.ts'
import type { DiskBreakerState } from './disk-breaker.ts'
import { createHostGuard, type HostOptions } from './host-guard.ts'
import { createHousekeeping } from './housekeeping.ts'
import { idleTimes, type IdleOptions } from './idle.ts'
import { createGate, createKeyedLock } from '#shared/async/keyed-lock'
import type { SandboxLedger } from '../ledger.ts'
import { DEFAULT_LIMITS } from '../limits.ts'
import { isDeploymentId, LABEL } from '../names.ts'
import { proveOnce } from './proof.ts'
import { Pool, type PoolOptions } from './pool.ts'
import { createReconciler } from './reconciler.ts'
import type { Sandbox, SandboxStat } from '../sandbox.ts'
import { ALONE, anothersError, type SharedEngine } from './shared-engine.ts'
import { UserSandboxes } from './user-sandboxes.ts'
import { forgetMissing } from './workspaces.ts'
import { orAborted } from '#shared/async/or-aborted'

/** How long `close` waits for an engine that is slow to wake what is paused. */
const RESUME_MS = 10_000

/**
 * How far the epoch that a sandbox has seen may be ahead of our time: what is in there must not
 * drive that of the ledger up.
 */
const LIKELY_AHEAD_MS = 3_600_000

export interface SandboxesOptions {
  backend: SandboxBackend
  ledger: SandboxLedger
  /**
   * 32 random bytes that never leave the controller. Owner tags and sbxd keys are derived from it.
   */
  deploymentKey: Uint8Array
  /** Made together with the key, `[a-z0-9-]`, at most 40. The backend's own must be the same. */
  deploymentId: string
  /** Image id or tag. */
  image: string
  /** Default `DEFAULT_LIMITS`. */
  limits?: SandboxLimits
  /** OCI runtime; default the engine's. */
  runtime?: string
  /**
   * Whose sandbox has which system call filter, asked at every start; without an id for the warm
   * ones, which then serve only users who have the same. Default `default` for all.
   */
  profileFor?: (userId: string | undefined) => SandboxProfile
  /** Sandboxes that are made or started at once. Default 8. */
  startsAtOnce?: number
  /** How long an acquire may take; beyond it, it rejects with `timeout`. */
  patience?: Patience
  /** Warm sandboxes for users who have none yet, see `maintain`. Default none. */
  pool?: PoolOptions
  /** When unused sandboxes are paused and stopped, see `maintain`. */
  idle?: IdleOptions
  /** Milliseconds between two looks at what is on the engine, see `maintain`. Default 60,000. */
  lookEveryMs?: number
  /**
   * How long something without an owner must have been seen before it is removed. Default 120,000.
   */
  graceMs?: number
  /** What programs inside may reach. Default `none`: nothing at all. */
  network?: 'none' | { egress: EgressOptions }
  /** What all sandboxes together may use of their host. Default: as much as there is. */
  host?: HostOptions
  /** Where several controllers share engine and ledger. Default: this is the only one. */
  share?: SharedEngine
  /**
   * Receives problems outside of any call, for example a stream that dropped and could not be
   * opened again.
   */
  log?: (message: string, details: { userId?: string; slot?: string; error?: unknown }) => void
}

interface SandboxStatus {
  /** `absent`: this user has no container (yet); the files, if any, are kept. */
  state: SandboxState
  /** Whether this controller has a stream to it. */
  connected: boolean
  id?: string
  name?: string
  slot?: string
  uid?: number
  /** What it uses, when there is a stream to it and it is awake. */
  stat?: SandboxStat
  /** The name of its image, where it is known. */
  image?: string | undefined
  /** How it was made ready the last time, or is being; empty before this controller did. */
  steps?: readonly StartStep[]
}

/** The sandboxes of all users. Every method rejects with a `SandboxError`. */
export interface Sandboxes {
  /**
   * This user's running sandbox, made, started or resumed as needed: the same one for any number of
   * calls at once. Costs nothing while a stream is open. After a drop the next call gives a fresh
   * `Sandbox`; take commands that were running up again with `attach`. `signal` ends only this
   * caller's waiting: a sandbox that is connected is given all the same. Rejects with `fenced` for
   * one that is another controller's, as `reset`, `stop` and `remove` do.
   */
  acquire(userId: string, signal?: AbortSignal): Promise<Sandbox>
  /**
   * This user's sandbox while there is a stream to it, else undefined: nothing is started or
   * connected for the question, but what another controller left running of a user who is now ours.
   */
  connected(userId: string): Promise<Sandbox | undefined>
  status(userId: string): Promise<SandboxStatus>
  /**
   * Kill every process of this user and empty /tmp; the workspace stays. Restarts a sandbox that
   * does not answer. With `replace`, on the word of an administrator, a user whose volume is
   * missing gets a new one: resolves with the name of the missing one.
   */
  reset(userId: string, missing?: 'refuse' | 'replace'): Promise<string | undefined>
  /** Stop this user's container; its files stay, and the next `acquire` starts it again. */
  stop(userId: string): Promise<void>
  /**
   * On the word of a person: remove this user's container, whatever runs in it, and with `purge`
   * their files for good. What was kept the next `acquire` finds again. To be repeated when it was
   * cut off.
   */
  remove(userId: string, files: 'keep' | 'purge'): Promise<void>
  /**
   * Stop every container of this deployment that is no other controller's, also those that there is
   * no stream to.
   */
  stopAll(): Promise<void>
  /**
   * Maintain all sandboxes that are this controller's from now on, until `close`: open the streams
   * to those that run, so that their leases do not end; bring engine and ledger together; keep the
   * pool filled; pause and stop what is idle. What another controller holds of these is taken over.
   * Resolves after the first look; never rejects.
   */
  maintain(): Promise<void>
  /**
   * Stop the sandbox that was not used for longest, of those in which nothing runs. False when
   * there is none.
   */
  stopLongestIdle(): Promise<boolean>
  /** Whether the host is short of disk, so that nothing may grow. */
  hostDisk(): DiskBreakerState
  /** Resolves when the pool holds as many as it should, or cannot just now. */
  poolFilled(): Promise<void>
  /**
   * Close all streams; containers and commands go on. After `maintain`, what is paused and no other
   * controller's is woken, so that its lease runs out if no controller comes back.
   */
  close(): Promise<void>
}

/**
 * One controller's sandboxes. Throws `invalid_arguments` for a deployment id or key that cannot be.
 */
export function createSandboxes(options: SandboxesOptions): Sandboxes {
  const { ledger, deploymentId, deploymentKey, share = ALONE } = options
  if (!isDeploymentId(deploymentId))
    throw new SandboxError('invalid_arguments', `"${deploymentId}" is not a deployment id.`)
  if (deploymentKey.length < 32)
    throw new SandboxError('invalid_arguments', 'The deployment key must have at least 32 bytes.')
  const limits = options.limits ?? DEFAULT_LIMITS
  const guard = createHostGuard({
    backend: options.backend,
    deploymentId,
    limits,
    host: options.host ?? {},
    makeRoom: async () => {
      const isMade = await stopLongestIdle()
      // Found at the next try, when another controller has made it.
      if (!isMade) await share.askForRoom()
      return isMade
    },
    connected: () => userSandboxes.liveSandboxes(),
    log: (message, details) => log(message, details),
  })
  const { backend } = guard
  const containerOptions: ContainerOptions = {
    backend,
    ledger,
    deploymentId,
    deploymentKey,
    image: options.image,
    limits,
    runtime: options.runtime,
    profileFor: options.profileFor,
    seen: new Map(),
  }
  const lock = createKeyedLock()
  const gate = createGate(options.startsAtOnce ?? 8)
  const closing = new AbortController()
  const log: NonNullable<SandboxesOptions['log']> = (message, details) => options.log?.(message, details)
  const reconciler = createReconciler({
    ...containerOptions,
    graceMs: options.graceMs,
    locked: (userId, work) => lock.run(userId, work),
    isBeingMade: (slot) => pool.isBusy(slot),
    share,
    log,
  })
  const prove = proveOnce(backend)
  const pool = new Pool(options.pool ?? { size: 0 }, {
    ...containerOptions,
    gate,
    prove,
    closing: closing.signal,
    leads: () => share.leads(),
    log: (message, error) => log(message, { error }),
  })
  const { network = 'none' } = options
  const egress = network === 'none' ? undefined : createEgress(network.egress)
  const userSandboxes = new UserSandboxes({
    ...containerOptions,
    lock,
    gate,
    pool,
    prove,
    budget: () => guard.budget(),
    hasContainer: (owner) => reconciler.hasContainer(owner),
    closing: closing.signal,
    log,
    patience: options.patience,
    egress,
    owns: (userId) => share.owns(userId),
    // The only controller gives way to the one that has taken its place.
    newerEpoch: options.share && newerEpoch,
    isStillOwn: options.share && ((userId) => share.claim(userId)),
  })

  /** Of a ledger that lost its last changes, or a clock that goes behind those of the others. */
  async function newerEpoch(userId: string, current: number): Promise<number | undefined> {
    const isLikely = current < Date.now() + LIKELY_AHEAD_MS
    return share.owns(userId) && isLikely ? ledger.nextEpoch(current) : undefined
  }

  share.onLost((userId) => {
    // `close` does not reject.
    void userSandboxes.release(userId)
  })
  let maintained = false
  const housekeeping = createHousekeeping({
    deploymentId,
    reconcile: () => reconciler.pass(),
    pool,
    userSandboxes,
    backend,
    ledger,
    idle: idleTimes(options.idle),
    reconcileEveryMs: options.lookEveryMs ?? 60_000,
    closing: closing.signal,
    share,
    log,
  })

  async function stopLongestIdle(): Promise<boolean> {
    for (const candidate of userSandboxes.liveSandboxes().toSorted((a, b) => a.usedAt - b.usedAt))
      if (await userSandboxes.stopIdle(candidate)) return true
    return false
  }

  /** Those that no other controller looks after: this one's, and what a dead one has left. */
  async function ownContainers(): Promise<BackendSandbox[]> {
    const containers = await backend.list({})
    if (options.share === undefined) return containers
    const users = new Map((await ledger.list()).map(({ slot, userId }) => [slot, userId]))
    const own: BackendSandbox[] = []
    for (const container of containers) {
      const userId = users.get(container.labels[LABEL.slot] ?? '')
      const isOurs = userId === undefined ? share.leads() : share.owns(userId)
      if (isOurs || !(await share.isElsewhere(userId))) own.push(container)
    }
    return own
  }

  /**
   * A paused sandbox does not use up its lease: without a controller it would stay for ever.
   */
  async function resumeAll(): Promise<void> {
    try {
      const paused = (await ownContainers()).filter(({ state }) => state === 'paused')
      await allOf(paused.map(({ id }) => gate(() => backend.resume(id))))
    } catch (error) {
      log('paused sandboxes could not be resumed before the close', { error })
    }
  }

  async function acquire(userId: string, signal?: AbortSignal): Promise<Sandbox> {
    if (closing.signal.aborted) throw closedError()
    checkOwned(userId)
    const mayLeave = signal !== undefined && !userSandboxes.isConnected(userId)
    // Before anything is begun for a caller that has left.
    if (mayLeave && signal.aborted) throw stoppedWaiting()
    guard.begin()
    const joined = userSandboxes.join(userId)
    const sandbox = await (mayLeave ? orAborted(joined, signal, stoppedWaiting) : joined)
    await guard.adjust(sandbox)
    // It may have been started before this user had a way out.
    const wayOut = egress?.forUser(userId)
    if (wayOut !== undefined) await sandbox.openEgress(wayOut)
    return sandbox
  }

  function checkOwned(userId: string): void {
    checkUser(userId)
    if (!share.owns(userId)) throw anothersError()
  }

  return {
    acquire,

    async connected(userId) {
      checkUser(userId)
      const isThere =
        options.share === undefined
          ? userSandboxes.isConnected(userId)
          : await userSandboxes.isTakenUp(userId)
      return isThere ? userSandboxes.join(userId) : undefined
    },

    async status(userId) {
      checkUser(userId)
      const slot = await ledger.find(userId)
      if (!slot) return { state: 'absent', connected: false, steps: userSandboxes.steps(userId) }
      const [container] = await containersOf(slot.slot, containerOptions)
      const known = {
        slot: slot.slot,
        uid: slot.uid,
        connected: userSandboxes.isConnected(userId),
        steps: userSandboxes.steps(userId),
      }
      if (!container) return { ...known, state: 'absent' }
      const stat = await userSandboxes.stat(userId)
      return {
        ...known,
        state: container.state,
        id: container.id,
        name: container.name,
        image: container.image,
        stat,
      }
    },

    async reset(userId, missing = 'refuse') {
      try {
        await (await acquire(userId)).reset()
        return undefined
      } catch (error) {
        if (error instanceof SandboxError && error.code === 'workspace_missing' && missing === 'replace') {
          const volume = await lock.run(userId, () => forgetMissing(userId, containerOptions))
          await acquire(userId)
          return volume
        }
        // It runs but does not answer: a restart ends every process and empties /tmp as well.
        const silent =
          error instanceof SandboxError && ['timeout', 'protocol', 'sandbox_lost'].includes(error.code)
        if (!silent) throw error
        await userSandboxes.stop(userId)
        await acquire(userId)
        return undefined
      }
    },

    async stop(userId) {
      checkOwned(userId)
      await userSandboxes.stop(userId)
    },

    async remove(userId, files) {
      checkOwned(userId)
      await userSandboxes.remove(userId, files)
    },

    async stopAll() {
      await pool.close()
      await userSandboxes.disconnectAll()
      const running = (await ownContainers()).filter(
        (container) => container.state === 'running' || container.state === 'paused',
      )
      await allOf(running.map((container) => gate(() => backend.stop(container.id))))
    },

    maintain() {
      maintained = true
      return housekeeping.begin()
    },

    poolFilled: () => pool.filled(),

    stopLongestIdle,

    hostDisk: () => guard.disk(),

    async close() {
      closing.abort()
      guard.close()
      await housekeeping.ended()
      await pool.close()
      await userSandboxes.disconnectAll()
      if (maintained) await Promise.race([resumeAll(), sleep(RESUME_MS, undefined, { ref: false })])
    },
  }
}

function checkUser(userId: string): void {
  if (userId.length === 0 || userId.length > 256 || !userId.isWellFormed())
    throw new SandboxError('invalid_arguments', 'A user id has 1 to 256 well-formed characters.')
}

function closedError(): SandboxError {
  return new SandboxError('cancelled', 'The controller is closing.')
}

function stoppedWaiting(): SandboxError {
  return new SandboxError('cancelled', 'Stopped waiting for the sandbox.')
}
