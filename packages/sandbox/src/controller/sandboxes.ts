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
import { createProve } from './proof.ts'
import { Pool, type PoolOptions } from './pool.ts'
import { createReconciler } from './reconciler.ts'
import type { Sandbox, SandboxStat } from '../sandbox.ts'
import { ALONE, ownedElsewhere, type SharedEngine } from './shared-engine.ts'
import { UserSandboxes } from './user-sandboxes.ts'
import { forgetMissing } from './workspaces.ts'
import { orAborted } from '#shared/async/or-aborted'
import { orTimeout } from '#shared/async/or-timeout'

/** Time limit of `close` for an engine that is slow to resume. */
const RESUME_MS = 10_000

/**
 * Plausible lead of a sandbox's epoch over our clock: a sandbox must not drive the ledger's epoch
 * up.
 */
const LIKELY_AHEAD_MS = 3_600_000

export interface SandboxesOptions {
  backend: SandboxBackend
  ledger: SandboxLedger
  /**
   * 32 random bytes that never leave the controller, from which owner tags and sbxd keys are
   * derived.
   */
  deploymentKey: Uint8Array
  /** Created together with the key, `[a-z0-9-]`, at most 40. Must equal the backend's own. */
  deploymentId: string
  /** Image id or tag. */
  image: string
  /** Default `DEFAULT_LIMITS`. */
  limits?: SandboxLimits
  /** OCI runtime; default the engine's. */
  runtime?: string
  /**
   * System call filter by user, read at every start; without an id for warm ones, which then serve
   * only users with the same. Default `default` for all.
   */
  profileFor?: (userId: string | undefined) => SandboxProfile
  /** Sandboxes created or started at once. Default 8. */
  startsAtOnce?: number
  /** Time limits of an acquire, which then rejects with `timeout`. */
  patience?: Patience
  /** Warm sandboxes for users who have none yet, see `maintain`. Default none. */
  pool?: PoolOptions
  /** Pausing and stopping of unused sandboxes, see `maintain`. */
  idle?: IdleOptions
  /** Milliseconds between two checks of the engine, see `maintain`. Default 60,000. */
  lookEveryMs?: number
  /**
   * Milliseconds for which an ownerless container must be seen before its removal. Default 120,000.
   */
  graceMs?: number
  /** Network access of programs inside. Default `none`. */
  network?: 'none' | { egress: EgressOptions }
  /** Limits for all sandboxes of their host. Default: none. */
  host?: HostOptions
  /** For several controllers on one engine and ledger. Default: this is the only one. */
  share?: SharedEngine
  /**
   * Receives problems outside of any call, for example a stream that dropped and could not be
   * reopened.
   */
  log?: (message: string, details: { userId?: string; slot?: string; error?: unknown }) => void
}

interface SandboxStatus {
  /** `absent`: this user has no container (yet); files, if any, are kept. */
  state: SandboxState
  /** This controller has a stream to it. */
  connected: boolean
  id?: string
  name?: string
  slot?: string
  uid?: number
  /** Usage, when it has a stream and is awake. */
  stat?: SandboxStat
  /** Name of its image, if known. */
  image?: string | undefined
  /** Steps of its current or last start; empty before this controller's first. */
  steps?: readonly StartStep[]
}

/** The sandboxes of all users. Every method rejects with a `SandboxError`. */
export interface Sandboxes {
  /**
   * This user's running sandbox, created, started or resumed as needed, and shared by all callers.
   * Free while a stream is open. After a drop the next call returns a new `Sandbox`; use `attach`
   * to resume commands that were running. `signal` ends only this caller's waiting: a connected
   * sandbox is returned all the same. Rejects with `fenced` for another controller's user, as
   * `reset`, `stop` and `remove` do.
   */
  acquire(userId: string, signal?: AbortSignal): Promise<Sandbox>
  /**
   * This user's sandbox if it has a stream, else undefined. Starts nothing, and connects only to
   * what another controller left running for a user who is now ours.
   */
  connected(userId: string): Promise<Sandbox | undefined>
  status(userId: string): Promise<SandboxStatus>
  /**
   * Kills every process of this user and empties /tmp; the workspace stays. Restarts a sandbox that
   * does not answer. With `replace`, on an administrator's request, a user whose volume is missing
   * gets a new one: resolves with the name of the missing one.
   */
  reset(userId: string, missing?: 'refuse' | 'replace'): Promise<string | undefined>
  /** Stops this user's container; its files stay, and the next `acquire` starts it again. */
  stop(userId: string): Promise<void>
  /**
   * On a person's request: removes this user's container with everything that runs in it, and with
   * `purge` their files for good. The next `acquire` finds kept files again. Repeat it after an
   * interruption.
   */
  remove(userId: string, files: 'keep' | 'purge'): Promise<void>
  /**
   * Stops every container of this deployment that is no other controller's, also those without a
   * stream.
   */
  stopAll(): Promise<void>
  /**
   * Maintains all sandboxes of this controller until `close`: opens streams to running ones, so
   * that their leases do not expire; reconciles engine and ledger; fills the pool; pauses and stops
   * idle ones. Takes them over from another controller. Resolves after the first round; never
   * rejects.
   */
  maintain(): Promise<void>
  /** Stops the least recently used sandbox in which no command runs. False when there is none. */
  stopLongestIdle(): Promise<boolean>
  /** State of the host's disk: while it is open, nothing may grow. */
  hostDisk(): DiskBreakerState
  /** Resolves when the pool is filled, or cannot be for now. */
  poolFilled(): Promise<void>
  /**
   * Closes all streams; containers and commands keep running. After `maintain`, paused ones without
   * another controller are resumed, so that their leases expire if no controller returns.
   */
  close(): Promise<void>
}

/** One controller's sandboxes. Throws `invalid_arguments` for an invalid deployment id or key. */
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
      // Room that another controller makes is found at the next try.
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
    alert: (message, details) => log(message, details),
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
  const prove = createProve(backend)
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
    // A single controller yields to the one that has taken its place.
    newerEpoch: options.share && newerEpoch,
    isStillOwn: options.share && ((userId) => share.claim(userId)),
  })

  /** For a ledger that lost its last changes, or a clock behind those of other controllers. */
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

  /** Containers without another controller: this one's, and those left by a dead one. */
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

  /** A paused sandbox does not use up its lease: without a controller it would stay for ever. */
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
    // Before any work is started for a caller that has left.
    if (mayLeave && signal.aborted) throw stoppedWaiting()
    guard.begin()
    const joined = userSandboxes.join(userId)
    const sandbox = await (mayLeave ? orAborted(joined, signal, stoppedWaiting) : joined)
    await guard.adjust(sandbox)
    // It may have been started before this user had egress.
    const userEgress = egress?.forUser(userId)
    if (userEgress !== undefined) await sandbox.openEgress(userEgress)
    return sandbox
  }

  function checkOwned(userId: string): void {
    checkUser(userId)
    if (!share.owns(userId)) throw ownedElsewhere()
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
        // It runs but does not answer: a restart kills every process and empties /tmp as well.
        const silent =
          error instanceof SandboxError &&
          ['timeout', 'protocol', 'sandbox_lost', 'engine_unavailable'].includes(error.code)
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
      if (maintained) await orTimeout(resumeAll(), RESUME_MS, undefined)
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
