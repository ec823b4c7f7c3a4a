import { setTimeout as sleep } from 'node:timers/promises'

import type { SandboxBackend, SandboxLimits, SandboxState } from './backend.ts'
import { bringUp, containersOf, type BringUpOptions } from './bring-up.ts'
import { connectSandbox, type ConnectedSandbox } from './client.ts'
import { SandboxError } from './errors.ts'
import { deriveSandboxKey } from './key.ts'
import { createGate, createKeyedLock } from './keyed-lock.ts'
import type { SandboxLedger } from './ledger.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import { isDeploymentId } from './names.ts'
import type { Sandbox } from './sandbox.ts'
import { slotFor } from './slots.ts'

/** When a stream drops, the waits in milliseconds before each try to open a new one. */
const RECONNECT_AFTER = [50, 250, 1_000, 4_000, 15_000]

/** How long one acquire may take altogether, whoever waits for it. */
const ACQUIRE_MS = 120_000

export interface SandboxesOptions {
  backend: SandboxBackend
  ledger: SandboxLedger
  /** 32 random bytes that never leave the controller. Owner tags and sbxd keys are derived from it. */
  deploymentKey: Uint8Array
  /** Made together with the key, `[a-z0-9-]`, at most 40. The backend's own must be the same. */
  deploymentId: string
  /** Image id or tag. */
  image: string
  /** Default `DEFAULT_LIMITS`. */
  limits?: SandboxLimits
  /** OCI runtime; default the engine's. */
  runtime?: string
  /** Sandboxes that are made or started at once. Default 8. */
  startsAtOnce?: number
  /** Told about what nobody waits for: a stream that dropped and could not be opened again. */
  log?: (message: string, details: { userId: string; error?: unknown }) => void
}

export interface SandboxStatus {
  /** `absent`: this user has no container (yet); the files, if any, are kept. */
  state: SandboxState
  /** Whether this controller has a stream to it. */
  connected: boolean
  id?: string
  name?: string
  slot?: string
  uid?: number
}

/** Everybody's sandboxes. Every method rejects with a `SandboxError`. */
export interface Sandboxes {
  /**
   * This user's running sandbox, made, started or resumed as needed: the same one for any number of calls at once.
   * Costs nothing while a stream is open. After a drop the next call gives a fresh `Sandbox`; take commands that were
   * running up again with `attach`. `signal` ends only this caller's waiting.
   */
  acquire(userId: string, signal?: AbortSignal): Promise<Sandbox>
  status(userId: string): Promise<SandboxStatus>
  /** Kill every process of this user and empty /tmp; the workspace stays. Restarts a sandbox that does not answer. */
  reset(userId: string): Promise<void>
  /** Stop this user's container; its files stay, and the next `acquire` starts it again. */
  stop(userId: string): Promise<void>
  /** Stop every container of this deployment, also those that this controller has no stream to. */
  stopAll(): Promise<void>
  /** Let go of all streams; containers and commands go on. */
  close(): Promise<void>
}

/** One controller's sandboxes. Throws `invalid_arguments` for a deployment id or key that cannot be. */
export function createSandboxes(options: SandboxesOptions): Sandboxes {
  const { backend, ledger, deploymentId, deploymentKey } = options
  if (!isDeploymentId(deploymentId))
    throw new SandboxError('invalid_arguments', `"${deploymentId}" is not a deployment id.`)
  if (deploymentKey.length < 32)
    throw new SandboxError('invalid_arguments', 'The deployment key must have at least 32 bytes.')
  const bringUpOptions: BringUpOptions = {
    backend,
    ledger,
    deploymentId,
    deploymentKey,
    image: options.image,
    limits: options.limits ?? DEFAULT_LIMITS,
    ...(options.runtime === undefined ? {} : { runtime: options.runtime }),
  }
  const live = new Map<string, ConnectedSandbox>()
  const joining = new Map<string, Promise<Sandbox>>()
  const lock = createKeyedLock()
  const gate = createGate(options.startsAtOnce ?? 8)
  const closing = new AbortController()

  /** One attempt per user, shared by everybody who waits. */
  function join(userId: string): Promise<Sandbox> {
    const running = joining.get(userId)
    if (running) return running
    const started = lock
      .run(userId, async (): Promise<Sandbox> => live.get(userId) ?? (await gate(() => connect(userId))))
      .finally(() => joining.delete(userId))
    joining.set(userId, started)
    return started
  }

  async function connect(userId: string): Promise<ConnectedSandbox> {
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(ACQUIRE_MS)])
    try {
      const slot = await slotFor(userId, bringUpOptions)
      const sandbox = await bringUp(slot, bringUpOptions, signal, async ({ id, stream }) =>
        connectSandbox({
          id,
          stream,
          key: deriveSandboxKey(deploymentKey, id),
          epoch: await ledger.nextEpoch(),
          signal,
        }),
      )
      live.set(userId, sandbox)
      void sandbox.closed.then((why) => onDrop(userId, sandbox, why))
      return sandbox
    } catch (error) {
      if (closing.signal.aborted) throw closedError()
      if (signal.aborted)
        throw new SandboxError('timeout', 'The sandbox did not get ready within two minutes. Try again.', {
          cause: error,
        })
      throw error
    }
  }

  function onDrop(userId: string, sandbox: ConnectedSandbox, why: SandboxError | undefined): void {
    if (live.get(userId) !== sandbox) return
    live.delete(userId)
    // Fenced: another controller has it now, and taking it back would start a fight.
    if (closing.signal.aborted || why?.code === 'fenced') return
    void reconnect(userId)
  }

  /** Commands go on inside while no stream is open, but only for the length of sbxd's lease. */
  async function reconnect(userId: string): Promise<void> {
    let failure: unknown
    for (const ms of RECONNECT_AFTER) {
      try {
        await sleep(ms, undefined, { signal: closing.signal, ref: false })
        await lock.run(userId, () => connectIfRunning(userId))
        return
      } catch (error) {
        if (closing.signal.aborted) return
        failure = error
      }
    }
    options.log?.('the stream to a sandbox dropped and could not be opened again', { userId, error: failure })
  }

  /** Under the user's lock: between the look and the connecting nobody may stop what was seen running. */
  async function connectIfRunning(userId: string): Promise<void> {
    if (live.has(userId)) return
    const slot = await ledger.find(userId)
    const [container] = slot ? await containersOf(slot.slot, bringUpOptions) : []
    if (container?.state === 'running') await gate(() => connect(userId))
  }

  /** Forget the stream first, so that its end is not taken for a drop. */
  async function letGo(userId: string): Promise<void> {
    const sandbox = live.get(userId)
    live.delete(userId)
    await sandbox?.close()
  }

  async function stop(userId: string): Promise<void> {
    await lock.run(userId, async () => {
      await letGo(userId)
      const slot = await ledger.find(userId)
      if (!slot) return
      for (const container of await containersOf(slot.slot, bringUpOptions)) {
        if (container.state === 'running' || container.state === 'paused') await backend.stop(container.id)
      }
    })
  }

  async function acquire(userId: string, signal?: AbortSignal): Promise<Sandbox> {
    if (closing.signal.aborted) throw closedError()
    checkUser(userId)
    const open = live.get(userId)
    return open ?? (await abandonable(join(userId), signal))
  }

  return {
    acquire,

    async status(userId) {
      checkUser(userId)
      const slot = await ledger.find(userId)
      if (!slot) return { state: 'absent', connected: false }
      const [container] = await containersOf(slot.slot, bringUpOptions)
      const known = { slot: slot.slot, uid: slot.uid, connected: live.has(userId) }
      return container
        ? { ...known, state: container.state, id: container.id, name: container.name }
        : { ...known, state: 'absent' }
    },

    async reset(userId) {
      try {
        await (await acquire(userId)).reset()
      } catch (error) {
        // It runs but does not answer: a restart ends every process and empties /tmp as well.
        const silent =
          error instanceof SandboxError && ['timeout', 'protocol', 'sandbox_lost'].includes(error.code)
        if (!silent) throw error
        await stop(userId)
        await acquire(userId)
      }
    },

    async stop(userId) {
      checkUser(userId)
      await stop(userId)
    },

    async stopAll() {
      await Promise.all([...live.keys()].map(letGo))
      const containers = await backend.list({})
      const running = containers.filter(
        (container) => container.state === 'running' || container.state === 'paused',
      )
      await Promise.all(running.map((container) => gate(() => backend.stop(container.id))))
    },

    async close() {
      closing.abort()
      await Promise.allSettled(joining.values())
      await Promise.all([...live.keys()].map(letGo))
    },
  }
}

function checkUser(userId: string): void {
  if (userId.length === 0 || userId.length > 256)
    throw new SandboxError('invalid_arguments', 'A user id has 1 to 256 characters.')
}

function closedError(): SandboxError {
  return new SandboxError('cancelled', 'The controller is closing.')
}

/** Wait for `work` until `signal` ends; the work itself goes on. */
function abandonable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  return new Promise<T>((resolve, reject) => {
    const stopWaiting = (): void => reject(new SandboxError('cancelled', 'Stopped waiting for the sandbox.'))
    if (signal.aborted) return stopWaiting()
    signal.addEventListener('abort', stopWaiting, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stopWaiting))
  })
}
