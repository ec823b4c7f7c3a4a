import { setTimeout as sleep } from 'node:timers/promises'

import type { BackendSandbox, SandboxProfile } from './backend.ts'
import { bringUp, checkOwner, containersOf, open, type BringUpOptions } from './bring-up.ts'
import { connectSandbox, type ConnectedSandbox } from './client.ts'
import type { Egress } from './egress/egress.ts'
import type { Prove } from './doctor/proof.ts'
import { SandboxError } from './errors.ts'
import type { Idler } from './idle.ts'
import { deriveSandboxKey } from './key.ts'
import type { Gate, KeyedLock } from './keyed-lock.ts'
import type { LedgerSlot } from './ledger.ts'
import { ownerTag } from './names.ts'
import type { Pool } from './pool.ts'
import type { DiskBudget, SandboxStat } from './sandbox.ts'
import { knownSlot, slotFor } from './slots.ts'

/** When a stream drops, the waits in milliseconds before each try to open a new one. */
const RECONNECT_AFTER = [50, 250, 1_000, 4_000, 15_000]

/** How long an acquire may take, in milliseconds. */
export interface Patience {
  /** The making or starting of a sandbox, from its turn on. Default 120,000. */
  startMs?: number
  /** The wait for its turn: on a slow machine two hundred others may be before it. Default 900,000. */
  lineMs?: number
}

export interface TenantsContext extends BringUpOptions {
  lock: KeyedLock
  /** At most so many containers are started at once, here and elsewhere. */
  gate: Gate
  pool: Pick<Pool, 'take'>
  /** What a workspace may hold just now. */
  budget: () => DiskBudget
  prove: Prove
  /** Whether the engine may have a container of this owner tag, see `Reconciler`. */
  hasContainer: (owner: string) => boolean
  /** The way out of sandboxes. Absent: there is none. */
  egress?: Egress
  /** Ends when the controller lets go. */
  closing: AbortSignal
  patience?: Patience
  log: (message: string, details: { userId: string; error?: unknown }) => void
}

/** Everybody whose sandbox this controller has a stream to. */
export interface Tenants {
  /** At once when a stream is open; else one attempt per user, shared by everybody who waits. */
  join(userId: string): Promise<ConnectedSandbox>
  isConnected(userId: string): boolean
  /** Undefined without a stream, and for one that rests, which this would wake. Rejects when it does not answer. */
  stat(userId: string): Promise<SandboxStat | undefined>
  /** Open a stream to a container that ran at `seenAt`, unless there is one. Rejects with a `SandboxError`. */
  reattach(slot: LedgerSlot, container: BackendSandbox, epoch: number, seenAt: number): Promise<void>
  /** Not if anything happened to it after `unchangedSince`. */
  stop(userId: string, unchangedSince?: number): Promise<void>
  /** Its container goes, and with `files` its volume and its row in the ledger. Goes on where it was cut off. */
  remove(userId: string, files: 'keep' | 'purge'): Promise<void>
  /** Stop it if nothing runs in it, nobody asked for it since, and nothing else is being done with it just now. */
  stopIdle(idler: Idler): Promise<boolean>
  idlers(): Idler[]
  letGoOfAll(): Promise<void>
}

/** A stream to a sandbox that is nobody's to use yet. */
interface Connection {
  sandbox: ConnectedSandbox
  profile: SandboxProfile
}

interface Tenant {
  sandbox: ConnectedSandbox
  /** When somebody last asked for it, on the clock of `performance.now()`. */
  askedAt: number
}

export function createTenants(context: TenantsContext): Tenants {
  const { backend, ledger, lock, gate, closing } = context
  const { startMs = 120_000, lineMs = 900_000 } = context.patience ?? {}
  const profileFor = context.profileFor ?? (() => 'default')
  const live = new Map<string, Tenant>()
  const joining = new Map<string, Promise<ConnectedSandbox>>()
  /** When a stream of this user last came or went: what was seen on the engine before that says nothing any more. */
  const changedAt = new Map<string, number>()
  const unchanged = (userId: string, since: number): boolean => (changedAt.get(userId) ?? 0) < since

  function join(userId: string): Promise<ConnectedSandbox> {
    const tenant = live.get(userId)
    if (tenant) {
      tenant.askedAt = performance.now()
      return Promise.resolve(tenant.sandbox)
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

  async function admit(userId: string, { sandbox, profile }: Connection): Promise<ConnectedSandbox> {
    try {
      await context.prove(sandbox, profile)
      const egress = context.egress?.forUser(userId)
      if (egress) await sandbox.openEgress(egress)
      // Nobody would let go of it any more.
      closing.throwIfAborted()
    } catch (error) {
      await sandbox.close()
      throw error
    }
    live.set(userId, { sandbox, askedAt: performance.now() })
    changedAt.set(userId, performance.now())
    void sandbox.closed.then((why) => onDrop(userId, sandbox, why))
    return sandbox
  }

  async function connect(userId: string): Promise<ConnectedSandbox> {
    try {
      return await admit(userId, (await takeFromPool(userId)) ?? (await inTurn(userId)))
    } catch (error) {
      if (closing.aborted) throw new SandboxError('cancelled', 'The controller is closing.')
      throw error
    }
  }

  /** The time that it may take counts from when its turn comes. */
  async function inTurn(userId: string): Promise<Connection> {
    const line = AbortSignal.any([closing, AbortSignal.timeout(lineMs)])
    let began = false
    try {
      return await gate(() => {
        began = true
        return within(startMs, (signal) => bringUpFor(userId, signal))
      }, line)
    } catch (error) {
      if (began || !line.aborted) throw error
      throw new SandboxError(
        'timeout',
        `Its turn did not come within ${shown(lineMs)}: very many sandboxes are being started. Try again later.`,
        { cause: error },
      )
    }
  }

  async function within<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const deadline = AbortSignal.timeout(ms)
    try {
      return await work(AbortSignal.any([closing, deadline]))
    } catch (error) {
      if (!deadline.aborted) throw error
      throw new SandboxError('timeout', `The sandbox did not get ready within ${shown(ms)}. Try again.`, {
        cause: error,
      })
    }
  }

  /** Only for somebody of whom the engine knows nothing, and the ledger neither: a lost ledger hides nobody's files. */
  async function takeFromPool(userId: string): Promise<Connection | undefined> {
    if (context.hasContainer(ownerTag(context.deploymentKey, userId))) return undefined
    const profile = profileFor(userId)
    if (profile !== profileFor(undefined)) return undefined
    const sandbox = (await context.pool.take(userId))?.sandbox
    return sandbox && { sandbox, profile }
  }

  async function bringUpFor(userId: string, signal: AbortSignal): Promise<Connection> {
    const slot = await slotFor(userId, context)
    return bringUp(slot, context, signal, async ({ id, stream, profile }) => ({
      profile,
      sandbox: await connectSandbox({
        id,
        stream,
        key: deriveSandboxKey(context.deploymentKey, id),
        epoch: await ledger.nextEpoch(),
        signal,
        disk: context.budget(),
      }),
    }))
  }

  function onDrop(userId: string, sandbox: ConnectedSandbox, why: SandboxError | undefined): void {
    if (live.get(userId)?.sandbox !== sandbox) return
    live.delete(userId)
    // Fenced: another controller has it now, and taking it back would start a fight.
    if (closing.aborted || why?.code === 'fenced') return
    void reconnect(userId, sandbox.resting)
  }

  /** Commands go on inside while no stream is open, but only for the length of sbxd's lease. */
  async function reconnect(userId: string, resting: boolean): Promise<void> {
    let failure: unknown
    for (const ms of RECONNECT_AFTER) {
      try {
        await sleep(ms, undefined, { signal: closing, ref: false })
        await lock.run(userId, () => connectIfRunning(userId, resting))
        return
      } catch (error) {
        if (closing.aborted) return
        failure = error
      }
    }
    context.log('the stream to a sandbox dropped and could not be opened again', { userId, error: failure })
  }

  /** Under the user's lock: between the look and the connecting nobody may stop what was seen running. */
  async function connectIfRunning(userId: string, resting: boolean): Promise<void> {
    if (live.has(userId)) return
    const slot = await ledger.find(userId)
    const [container] = slot ? await containersOf(slot.slot, context) : []
    // Paused by somebody else while it was in use: it is wanted.
    const wanted = container?.state === 'running' || (container?.state === 'paused' && !resting)
    if (wanted) await connect(userId)
  }

  /** Forget the stream first, so that its end is not taken for a drop. */
  async function letGo(userId: string, why?: SandboxError): Promise<void> {
    const tenant = live.get(userId)
    live.delete(userId)
    changedAt.set(userId, performance.now())
    await tenant?.sandbox.close(why)
  }

  return {
    join,
    isConnected: (userId) => live.has(userId),

    async stat(userId) {
      const sandbox = live.get(userId)?.sandbox
      return sandbox === undefined || sandbox.resting ? undefined : sandbox.stat()
    },

    async reattach(slot, container, epoch, seenAt) {
      const { userId } = slot
      if (userId === undefined) return
      await lock.run(userId, async () => {
        if (live.has(userId) || closing.aborted || !unchanged(userId, seenAt)) return
        checkOwner([container], slot, context)
        const { id, stream, profile } = await open(container, backend, closing)
        const key = deriveSandboxKey(context.deploymentKey, id)
        const disk = context.budget()
        const sandbox = await connectSandbox({ id, stream, key, epoch, signal: closing, disk })
        await admit(userId, { sandbox, profile })
      })
    },

    stop: (userId, since = Number.POSITIVE_INFINITY) =>
      lock.run(userId, async () => {
        if (!unchanged(userId, since)) return
        await letGo(userId)
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
        await letGo(userId, new SandboxError('sandbox_lost', 'The sandbox was removed.'))
        const slot = await knownSlot(userId, context)
        if (!slot) return
        const containers = await containersOf(slot.slot, context)
        checkOwner(containers, slot, context)
        for (const { id } of containers) await backend.remove(id)
        changedAt.set(userId, performance.now())
        if (files === 'keep') return
        // The row last: while it is there, it is known whose what is left was.
        await backend.removeVolume(slot.volume)
        await ledger.release(slot.slot)
      }),

    stopIdle: async ({ userId, sandbox, usedAt }) => {
      // Never waited for: whoever makes room holds up all starts, and the one who has the lock may be waiting to start.
      const stopped = lock.tryRun(userId, async () => {
        const tenant = live.get(userId)
        if (tenant?.sandbox !== sandbox || tenant.askedAt > usedAt) return false
        if (!sandbox.resting && (sandbox.usedAt > usedAt || !(await sandbox.rest(() => {})))) return false
        // Asked for while it was asked whether anything runs.
        if (!sandbox.resting || tenant.askedAt > usedAt || live.get(userId) !== tenant) return false
        await letGo(userId, new SandboxError('sandbox_lost', 'The sandbox was stopped because it was idle.'))
        await backend.stop(sandbox.id)
        changedAt.set(userId, performance.now())
        return true
      })
      return (await stopped) ?? false
    },

    idlers: () =>
      [...live].map(([userId, { sandbox, askedAt }]) => ({
        userId,
        sandbox,
        usedAt: Math.max(sandbox.usedAt, askedAt),
      })),

    async letGoOfAll() {
      await Promise.allSettled(joining.values())
      await Promise.all([...live.keys()].map((userId) => letGo(userId)))
    },
  }
}

function shown(ms: number): string {
  return ms < 120_000 ? `${ms / 1_000} seconds` : `${ms / 60_000} minutes`
}
