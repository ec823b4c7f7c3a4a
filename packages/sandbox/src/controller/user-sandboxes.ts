import { setTimeout as sleep } from 'node:timers/promises'

import type { BackendSandbox } from '../backend.ts'
import { checkOwner, containersOf } from './start-container.ts'
import type { ConnectedSandbox } from '../sbxd/client.ts'
import { type Connection, type ConnectingContext, Connecting, type StartStep } from './connecting.ts'
import { removeWorkspace } from './empty-workspace.ts'
import { SandboxError } from '../errors.ts'
import type { LiveSandbox } from './idle.ts'
import { createGate, type KeyedLock } from '#shared/async/keyed-lock'
import type { LedgerSlot } from '../ledger.ts'
import type { SandboxStat } from '../sandbox.ts'
import { isUnsafe } from './proof.ts'
import { ownedElsewhere } from './shared-engine.ts'
import { knownSlot } from './slots.ts'

/** Proofs at once in a round: each is a program that takes a processor. */
const PROVED_AT_ONCE = 4

/** Milliseconds before each try to open a dropped stream again. */
const RECONNECT_AFTER = [50, 250, 1_000, 4_000, 15_000]

interface UserSandboxesContext extends ConnectingContext {
  lock: KeyedLock
  /** This user is this controller's. */
  owns: (userId: string) => boolean
  /**
   * This user is still this controller's although another one has taken the sandbox over, which was
   * late. Absent: the sandbox is the other one's.
   */
  isStillOwn?: ((userId: string) => Promise<boolean>) | undefined
  log: (message: string, details: { userId: string; slot?: string; error?: unknown }) => void
}

interface UserSandbox extends Connection {
  /** Last call that requested it, on the clock of `performance.now()`. */
  askedAt: number
  /** `Connecting.admit` of one that was taken over, from the first call on. */
  admission?: Promise<void>
}

/** Sandboxes to which this controller has a stream, by user. */
export class UserSandboxes {
  readonly #context: UserSandboxesContext
  readonly #connecting: Connecting
  readonly #live = new Map<string, UserSandbox>()
  readonly #joining = new Map<string, Promise<ConnectedSandbox>>()
  /** Last opening or closing of a user's stream: earlier observations of the engine are stale. */
  readonly #changedAt = new Map<string, number>()
  /** When a user became another controller's: work begun for them before that is cancelled. */
  readonly #lostAt = new Map<string, number>()
  /** One check per user of ours for what an earlier controller left running. */
  readonly #takenUp = new Map<string, Promise<void>>()

  constructor(context: UserSandboxesContext) {
    this.#context = context
    this.#connecting = new Connecting(context)
  }

  /** At once when a stream is open; else one attempt per user, shared by all callers. */
  join(userId: string): Promise<ConnectedSandbox> {
    const current = this.#live.get(userId)
    if (current) {
      current.askedAt = performance.now()
      return this.#proved(userId, current)
    }
    const running = this.#joining.get(userId)
    if (running) return running
    const started = this.#context.lock
      .run(
        userId,
        async (): Promise<ConnectedSandbox> =>
          this.#live.get(userId)?.sandbox ?? (await this.#connect(userId)),
      )
      .then((sandbox) => {
        // Without the lock, which the stop of an unsafe one takes.
        const opened = this.#live.get(userId)
        return opened?.sandbox === sandbox ? this.#proved(userId, opened) : sandbox
      })
      .finally(() => this.#joining.delete(userId))
    this.#joining.set(userId, started)
    return started
  }

  isConnected(userId: string): boolean {
    return this.#live.has(userId)
  }

  /**
   * `isConnected`, after one check for a running container of an earlier controller, to which it
   * then connects. Rejects with a `SandboxError`.
   */
  async isTakenUp(userId: string): Promise<boolean> {
    const live = this.#live
    if (live.has(userId) || !this.#context.owns(userId)) return live.has(userId)
    const check =
      this.#takenUp.get(userId) ?? this.#context.lock.run(userId, () => this.#connectIfRunning(userId, true))
    this.#takenUp.set(userId, check)
    try {
      await check
    } catch (error) {
      this.#takenUp.delete(userId)
      throw error
    }
    return live.has(userId)
  }

  /** See `Connecting.steps`. */
  steps(userId: string): readonly StartStep[] {
    return this.#connecting.steps(userId)
  }

  /**
   * Undefined without a stream, and for a paused sandbox, which this would wake. Rejects when it
   * does not answer.
   */
  async stat(userId: string): Promise<SandboxStat | undefined> {
    const sandbox = this.#live.get(userId)?.sandbox
    return sandbox === undefined || sandbox.paused ? undefined : sandbox.stat()
  }

  /**
   * Opens a stream to a container that ran at `seenAt`, unless there is one. Rejects with a
   * `SandboxError`.
   */
  async reattach(slot: LedgerSlot, container: BackendSandbox, epoch: number, seenAt: number): Promise<void> {
    const { lock, closing, owns } = this.#context
    const { userId } = slot
    if (userId === undefined) return
    await lock.run(userId, async () => {
      if (this.#live.has(userId) || closing.aborted || !owns(userId) || !this.#unchanged(userId, seenAt))
        return
      await this.#admit(userId, this.#connecting.reattach(slot, container, epoch))
    })
  }

  /** Does nothing if the stream was opened or closed after `since`. */
  stop(userId: string, since = Number.POSITIVE_INFINITY): Promise<void> {
    return this.#stopIf(userId, () => this.#unchanged(userId, since))
  }

  async #stopIf(userId: string, isDue: () => boolean): Promise<void> {
    const { backend, ledger, lock } = this.#context
    await lock.run(userId, async () => {
      if (!isDue()) return
      await this.#disconnect(userId)
      const slot = await ledger.find(userId)
      if (!slot) return
      const containers = await containersOf(slot.slot, this.#context)
      checkOwner(containers, slot, this.#context)
      for (const container of containers) {
        if (container.state === 'running' || container.state === 'paused') await backend.stop(container.id)
      }
      this.#changedAt.set(userId, performance.now())
    })
  }

  /**
   * Removes the container, and with `purge` the volume and the row in the ledger. Resumes an
   * interrupted removal.
   */
  async remove(userId: string, files: 'keep' | 'purge'): Promise<void> {
    const context = this.#context
    await context.lock.run(userId, async () => {
      await this.#disconnect(userId, new SandboxError('sandbox_lost', 'The sandbox was removed.'))
      const slot = await knownSlot(userId, context)
      if (!slot) return
      const containers = await containersOf(slot.slot, context)
      checkOwner(containers, slot, context)
      for (const { id } of containers) await context.backend.remove(id)
      this.#changedAt.set(userId, performance.now())
      if (files === 'keep') return
      // The row last: it is the record of whose the remaining files are.
      await removeWorkspace(slot, context, (message, details) => context.log(message, { userId, ...details }))
      await context.ledger.release(slot.slot)
    })
  }

  /**
   * Stops it if no command runs in it, no call has requested it since, and nothing else is in
   * progress for it.
   */
  async stopIdle({ userId, sandbox, usedAt }: LiveSandbox): Promise<boolean> {
    // Without waiting for the lock: making room delays all starts, and the lock's holder may itself
    // be waiting to start.
    const stopped = this.#context.lock.tryRun(userId, async () => {
      const current = this.#live.get(userId)
      if (current?.sandbox !== sandbox || current.askedAt > usedAt) return false
      if (!sandbox.paused && (sandbox.usedAt > usedAt || !(await sandbox.preparePause(() => {}))))
        return false
      // Requested during the check for running commands.
      if (!sandbox.paused || current.askedAt > usedAt || this.#live.get(userId) !== current) return false
      await this.#disconnect(
        userId,
        new SandboxError('sandbox_lost', 'The sandbox was stopped because it was idle.'),
      )
      await this.#context.backend.stop(sandbox.id)
      this.#changedAt.set(userId, performance.now())
      return true
    })
    return (await stopped) ?? false
  }

  /** Closes the stream, or the one that is being opened; commands inside keep running. */
  release(userId: string): Promise<void> {
    this.#lostAt.set(userId, performance.now())
    this.#takenUp.delete(userId)
    return this.#disconnect(userId, ownedElsewhere())
  }

  /**
   * Proves those again in which commands run, where that is due: a network may have come up around
   * them. Others are proved at their next call. Never rejects.
   */
  async proveBusy(): Promise<void> {
    const { backend, closing, log } = this.#context
    if (backend.inventory.unreachable === undefined) return
    const gate = createGate(PROVED_AT_ONCE)
    const prove = async (userId: string, current: UserSandbox): Promise<void> => {
      try {
        if ((await current.sandbox.stat()).load.commands > 0) await this.#proved(userId, current)
      } catch (error) {
        if (!closing.aborted) log('a sandbox could not be proved again', { userId, error })
      }
    }
    await Promise.all([...this.#live].map(([userId, current]) => gate(() => prove(userId, current))))
  }

  /**
   * One that no longer holds what it promises is stopped, with its commands. One that was taken
   * over and cannot be proved is disconnected. One that cannot be proved again is proved later:
   * the cause may be a command in it, or a name server.
   */
  async #proved(userId: string, current: UserSandbox): Promise<ConnectedSandbox> {
    const { closing, log, prove } = this.#context
    const { sandbox, profile } = current
    const isLive = (): boolean => this.#live.get(userId)?.sandbox.bootId === sandbox.bootId
    try {
      if (current.isAdmitted) await prove(sandbox, profile, true)
      else await (current.admission ??= this.#connecting.admit(userId, current))
      current.isAdmitted = true
    } catch (error) {
      if (isUnsafe(error)) await this.#stopIf(userId, isLive)
      else if (!current.isAdmitted && this.#live.get(userId) === current) await this.#disconnect(userId)
      if (isUnsafe(error) || !current.isAdmitted) throw error
      if (!closing.aborted) log('a sandbox could not be proved again', { userId, error })
    }
    return sandbox
  }

  liveSandboxes(): LiveSandbox[] {
    return [...this.#live].map(([userId, { sandbox, askedAt }]) => ({
      userId,
      sandbox,
      usedAt: Math.max(sandbox.usedAt, askedAt),
    }))
  }

  async disconnectAll(): Promise<void> {
    await Promise.allSettled(this.#joining.values())
    await Promise.all([...this.#live.keys()].map((userId) => this.#disconnect(userId)))
  }

  #unchanged(userId: string, since: number): boolean {
    return (this.#changedAt.get(userId) ?? 0) < since
  }

  #connect(userId: string): Promise<ConnectedSandbox> {
    return this.#admit(userId, this.#connecting.connect(userId))
  }

  /** Keeps the sandbox that `opening` opens, unless it may not be opened any more. */
  async #admit(userId: string, opening: Promise<Connection>): Promise<ConnectedSandbox> {
    const { closing, owns } = this.#context
    const begunAt = performance.now()
    const connection = await opening
    const { sandbox } = connection
    // `disconnectAll` or `release` has run already.
    const isLate = closing.aborted
      ? new SandboxError('cancelled', 'The controller is closing.')
      : owns(userId) && (this.#lostAt.get(userId) ?? 0) < begunAt
        ? undefined
        : ownedElsewhere()
    if (isLate !== undefined) {
      await sandbox.close()
      throw isLate
    }
    this.#live.set(userId, { ...connection, askedAt: performance.now() })
    this.#changedAt.set(userId, performance.now())
    void sandbox.closed.then((why) => this.#onDrop(userId, sandbox, why))
    return sandbox
  }

  #onDrop(userId: string, sandbox: ConnectedSandbox, why: SandboxError | undefined): void {
    if (this.#live.get(userId)?.sandbox !== sandbox) return
    this.#live.delete(userId)
    if (this.#context.closing.aborted) return
    void this.#reconnect(userId, sandbox.paused, why?.code === 'fenced')
  }

  /** Without a stream, commands keep running only until sbxd's lease expires. */
  async #reconnect(userId: string, paused: boolean, fenced: boolean): Promise<void> {
    const { closing, isStillOwn, lock, log, owns } = this.#context
    // Another controller has it now, and taking it back unasked would start a fight.
    if (fenced && (isStillOwn === undefined || !owns(userId))) return
    let failure: unknown
    for (const ms of RECONNECT_AFTER) {
      try {
        await sleep(ms, undefined, { signal: closing, ref: false })
        if (fenced && !(await isStillOwn?.(userId))) return
        await lock.run(userId, () => this.#connectIfRunning(userId, paused))
        return
      } catch (error) {
        if (closing.aborted) return
        failure = error
      }
    }
    log('the stream to a sandbox dropped and could not be opened again', { userId, error: failure })
  }

  /** Under the user's lock: nothing may stop the container between the check and the connect. */
  async #connectIfRunning(userId: string, paused: boolean): Promise<void> {
    if (this.#live.has(userId) || !this.#context.owns(userId)) return
    const slot = await this.#context.ledger.find(userId)
    const [container] = slot ? await containersOf(slot.slot, this.#context) : []
    // One that was paused from outside while in use is wanted.
    const wanted = container?.state === 'running' || (container?.state === 'paused' && !paused)
    if (wanted) await this.#connect(userId)
  }

  /** Removes the stream first, so that its end is not mistaken for a drop. */
  async #disconnect(userId: string, why?: SandboxError): Promise<void> {
    const current = this.#live.get(userId)
    this.#live.delete(userId)
    this.#connecting.forget(userId)
    this.#changedAt.set(userId, performance.now())
    await current?.sandbox.close(why)
  }
}
