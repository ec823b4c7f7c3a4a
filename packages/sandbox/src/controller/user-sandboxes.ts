import { setTimeout as sleep } from 'node:timers/promises'

import type { BackendSandbox } from '../backend.ts'
import { checkOwner, containersOf } from './start-container.ts'
import type { ConnectedSandbox } from '../sbxd/client.ts'
import { type ConnectingContext, type StartStep, createConnecting } from './connecting.ts'
import { removeWorkspace } from './empty-workspace.ts'
import { SandboxError } from '../errors.ts'
import type { LiveSandbox } from './idle.ts'
import type { KeyedLock } from '#shared/async/keyed-lock'
import type { LedgerSlot } from '../ledger.ts'
import type { SandboxStat } from '../sandbox.ts'
import { anothersError } from './shared-engine.ts'
import { knownSlot } from './slots.ts'

/** When a stream drops, the waits in milliseconds before each try to open a new one. */
const RECONNECT_AFTER = [50, 250, 1_000, 4_000, 15_000]

interface UserSandboxesContext extends ConnectingContext {
  lock: KeyedLock
  /** Whether this user is this controller's. */
  owns: (userId: string) => boolean
  /**
   * Whether a sandbox that another controller has taken over is this one's all the same: that one
   * was late. Absent: it is the other one's.
   */
  isStillOwn?: ((userId: string) => Promise<boolean>) | undefined
  log: (message: string, details: { userId: string; slot?: string; error?: unknown }) => void
}

/** The sandboxes that this controller has a stream to, by user. */
export interface UserSandboxes {
  /** At once when a stream is open; else one attempt per user, shared by all callers. */
  join(userId: string): Promise<ConnectedSandbox>
  isConnected(userId: string): boolean
  /**
   * The same, after it was looked once, since this user is ours, whether a container of an earlier
   * controller runs, which is then connected to. Rejects with a `SandboxError`.
   */
  isTakenUp(userId: string): Promise<boolean>
  /** As of `Connecting`. */
  steps(userId: string): readonly StartStep[]
  /**
   * Undefined without a stream, and for one that rests, which this would wake. Rejects when it does
   * not answer.
   */
  stat(userId: string): Promise<SandboxStat | undefined>
  /**
   * Open a stream to a container that ran at `seenAt`, unless there is one. Rejects with a
   * `SandboxError`.
   */
  reattach(slot: LedgerSlot, container: BackendSandbox, epoch: number, seenAt: number): Promise<void>
  /** Not if anything happened to it after `unchangedSince`. */
  stop(userId: string, unchangedSince?: number): Promise<void>
  /**
   * Its container goes, and with `files` its volume and its row in the ledger. Goes on where it was
   * cut off.
   */
  remove(userId: string, files: 'keep' | 'purge'): Promise<void>
  /**
   * Stop it if nothing runs in it, no call asked for it since, and nothing else is being done with
   * it just now.
   */
  stopIdle(candidate: LiveSandbox): Promise<boolean>
  /** Close the stream, or the one that is being opened; nothing inside ends. */
  release(userId: string): Promise<void>
  liveSandboxes(): LiveSandbox[]
  disconnectAll(): Promise<void>
}

interface UserSandbox {
  sandbox: ConnectedSandbox
  /** When a call last asked for it, on the clock of `performance.now()`. */
  askedAt: number
}

export function createUserSandboxes(context: UserSandboxesContext): UserSandboxes {
  const { backend, ledger, lock, closing, owns } = context
  const connecting = createConnecting(context)
  const live = new Map<string, UserSandbox>()
  const joining = new Map<string, Promise<ConnectedSandbox>>()
  /**
   * When a stream of this user last came or went: what was seen on the engine before that says
   * nothing any more.
   */
  const changedAt = new Map<string, number>()
  /** When a user became another controller's: what was begun for them before that ends. */
  const lostAt = new Map<string, number>()
  /** The look of each user who is ours, for what an earlier controller left running. */
  const takenUp = new Map<string, Promise<void>>()
  const unchanged = (userId: string, since: number): boolean => (changedAt.get(userId) ?? 0) < since

  function join(userId: string): Promise<ConnectedSandbox> {
    const current = live.get(userId)
    if (current) {
      current.askedAt = performance.now()
      return Promise.resolve(current.sandbox)
    }
    const running = joining.get(userId)
    if (running) return running
    const started = lock
      .run(
        userId,
        async (): Promise<ConnectedSandbox> => live.get(userId)?.sandbox ?? (await connect(userId)),
      )
      .finally(() => joining.delete(userId))
    joining.set(userId, started)
    return started
  }

  /** What `opening` opens since `begunAt` is this user's, unless nothing may be opened any more. */
  async function admit(
    userId: string,
    opening: Promise<ConnectedSandbox>,
    begunAt = performance.now(),
  ): Promise<ConnectedSandbox> {
    const sandbox = await opening
    // `disconnectAll` or `release` has run already.
    const isLate = closing.aborted
      ? new SandboxError('cancelled', 'The controller is closing.')
      : owns(userId) && (lostAt.get(userId) ?? 0) < begunAt
        ? undefined
        : anothersError()
    if (isLate !== undefined) {
      await sandbox.close()
      throw isLate
    }
    live.set(userId, { sandbox, askedAt: performance.now() })
    changedAt.set(userId, performance.now())
    void sandbox.closed.then((why) => onDrop(userId, sandbox, why))
    return sandbox
  }

  const connect = (userId: string): Promise<ConnectedSandbox> => admit(userId, connecting.connect(userId))

  function onDrop(userId: string, sandbox: ConnectedSandbox, why: SandboxError | undefined): void {
    if (live.get(userId)?.sandbox !== sandbox) return
    live.delete(userId)
    if (closing.aborted) return
    void reconnect(userId, sandbox.paused, why?.code === 'fenced')
  }

  /** Commands go on inside while no stream is open, but only for the length of sbxd's lease. */
  async function reconnect(userId: string, paused: boolean, fenced: boolean): Promise<void> {
    // Another controller has it now, and taking it back without being asked would start a fight.
    if (fenced && (context.isStillOwn === undefined || !owns(userId))) return
    let failure: unknown
    for (const ms of RECONNECT_AFTER) {
      try {
        await sleep(ms, undefined, { signal: closing, ref: false })
        if (fenced && !(await context.isStillOwn?.(userId))) return
        await lock.run(userId, () => connectIfRunning(userId, paused))
        return
      } catch (error) {
        if (closing.aborted) return
        failure = error
      }
    }
    context.log('the stream to a sandbox dropped and could not be opened again', { userId, error: failure })
  }

  /**
   * Under the user's lock: between the look and the connect nothing may stop what was seen running.
   */
  async function connectIfRunning(userId: string, paused: boolean): Promise<void> {
    if (live.has(userId) || !owns(userId)) return
    const slot = await ledger.find(userId)
    const [container] = slot ? await containersOf(slot.slot, context) : []
    // Paused from outside while in use: it is wanted.
    const wanted = container?.state === 'running' || (container?.state === 'paused' && !paused)
    if (wanted) await connect(userId)
  }

  /** Forget the stream first, so that its end is not taken for a drop. */
  async function disconnect(userId: string, why?: SandboxError): Promise<void> {
    const current = live.get(userId)
    live.delete(userId)
    connecting.forget(userId)
    changedAt.set(userId, performance.now())
    await current?.sandbox.close(why)
  }

  return {
    join,
    isConnected: (userId) => live.has(userId),

    async isTakenUp(userId) {
      if (live.has(userId) || !owns(userId)) return live.has(userId)
      const look = takenUp.get(userId) ?? lock.run(userId, () => connectIfRunning(userId, true))
      takenUp.set(userId, look)
      try {
        await look
      } catch (error) {
        takenUp.delete(userId)
        throw error
      }
      return live.has(userId)
    },

    steps: (userId) => connecting.steps(userId),

    async stat(userId) {
      const sandbox = live.get(userId)?.sandbox
      return sandbox === undefined || sandbox.paused ? undefined : sandbox.stat()
    },

    async reattach(slot, container, epoch, seenAt) {
      const { userId } = slot
      if (userId === undefined) return
      await lock.run(userId, async () => {
        if (live.has(userId) || closing.aborted || !owns(userId) || !unchanged(userId, seenAt)) return
        await admit(userId, connecting.reattach(slot, container, epoch))
      })
    },

    stop: (userId, since = Number.POSITIVE_INFINITY) =>
      lock.run(userId, async () => {
        if (!unchanged(userId, since)) return
        await disconnect(userId)
        const slot = await ledger.find(userId)
        if (!slot) return
        const containers = await containersOf(slot.slot, context)
        checkOwner(containers, slot, context)
        for (const container of containers) {
          if (container.state === 'running' || container.state === 'paused') await backend.stop(container.id)
        }
        changedAt.set(userId, performance.now())
      }),

    remove: (userId, files) =>
      lock.run(userId, async () => {
        await disconnect(userId, new SandboxError('sandbox_lost', 'The sandbox was removed.'))
        const slot = await knownSlot(userId, context)
        if (!slot) return
        const containers = await containersOf(slot.slot, context)
        checkOwner(containers, slot, context)
        for (const { id } of containers) await backend.remove(id)
        changedAt.set(userId, performance.now())
        if (files === 'keep') return
        // The row last: while it is there, it is known whose what is left was.
        await removeWorkspace(slot, context, (message, details) =>
          context.log(message, { userId, ...details }),
        )
        await ledger.release(slot.slot)
      }),

    stopIdle: async ({ userId, sandbox, usedAt }) => {
      // Without waiting: making room holds up all starts, and the holder of the lock may be waiting
      // to start.
      const stopped = lock.tryRun(userId, async () => {
        const current = live.get(userId)
        if (current?.sandbox !== sandbox || current.askedAt > usedAt) return false
        if (!sandbox.paused && (sandbox.usedAt > usedAt || !(await sandbox.preparePause(() => {}))))
          return false
        // Asked for while it was asked whether anything runs.
        if (!sandbox.paused || current.askedAt > usedAt || live.get(userId) !== current) return false
        await disconnect(
          userId,
          new SandboxError('sandbox_lost', 'The sandbox was stopped because it was idle.'),
        )
        await backend.stop(sandbox.id)
        changedAt.set(userId, performance.now())
        return true
      })
      return (await stopped) ?? false
    },

    release(userId) {
      lostAt.set(userId, performance.now())
      takenUp.delete(userId)
      return disconnect(userId, anothersError())
    },

    liveSandboxes: () =>
      [...live].map(([userId, { sandbox, askedAt }]) => ({
        userId,
        sandbox,
        usedAt: Math.max(sandbox.usedAt, askedAt),
      })),

    async disconnectAll() {
      await Promise.allSettled(joining.values())
      await Promise.all([...live.keys()].map((userId) => disconnect(userId)))
    },
  }
}
