import { setTimeout as sleep } from 'node:timers/promises'

import type { BackendSandbox, SandboxProfile } from '../backend.ts'
import {
  startContainer,
  type ContainerOptions,
  checkOwner,
  open,
  type OpenSandbox,
} from './start-container.ts'
import { connectSandbox, type ConnectedSandbox } from '../sbxd/client.ts'
import type { Egress } from '../egress/egress.ts'
import type { Prove } from './proof.ts'
import { SandboxError } from '../errors.ts'
import { deriveSandboxKey, deriveStateKey } from './key.ts'
import type { Gate } from '#shared/async/keyed-lock'
import type { LedgerSlot } from '../ledger.ts'
import { PROTOCOL_VERSION } from '../sbxd/protocol/frames.ts'
import { ownerTag } from '../names.ts'
import type { Pool } from './pool.ts'
import type { DiskBudget } from '../sandbox.ts'
import { slotFor } from './slots.ts'

/** How long an acquire may take, in milliseconds. */
export interface Patience {
  /** The making or starting of a sandbox, from its turn on. Default 120,000. */
  startMs?: number
  /**
   * The wait for its turn: on a slow machine two hundred others may be before it. Default 900,000.
   */
  lineMs?: number
  /**
   * The wait for an engine that cannot be reached, by all callers together: its gate is restarted
   * within seconds. A call that comes after that fails at its first try. Default 10,000.
   */
  engineMs?: number
}

/** Milliseconds between two tries to reach the engine. */
const TRY_EVERY_MS = 250
/** After so long without a try an engine that could not be reached is waited for anew. */
const OUTAGE_KNOWN_MS = 60_000

export interface ConnectingContext extends ContainerOptions {
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
  /**
   * As `NewerEpoch`, for the sandbox of this user. Absent: a greater one is another controller's.
   */
  newerEpoch?: ((userId: string, current: number) => Promise<number | undefined>) | undefined
  /** Aborts when the controller closes. */
  closing: AbortSignal
  patience?: Patience
}

/**
 * Opens streams to users' sandboxes. A sandbox that it resolves with is proved and has its egress
 * open.
 */
interface Connecting {
  /**
   * From the pool, or brought up in turn. Rejects with a `SandboxError`, `cancelled` when the
   * controller closes.
   */
  connect(userId: string): Promise<ConnectedSandbox>
  /** How the last `connect` of this user went so far; empty before the first one. */
  steps(userId: string): readonly StartStep[]
  /** What was opened is closed, and its steps are of no use. */
  forget(userId: string): void
  /** To this container of a claimed slot, which runs. Rejects with a `SandboxError`. */
  reattach(slot: LedgerSlot, container: BackendSandbox, epoch: number): Promise<ConnectedSandbox>
}

/** One step of the way to a sandbox that is ready. */
export interface StartStep {
  /** Epoch milliseconds. */
  at: number
  /**
   * `line`: it waits for its turn. `slot`: whose place it is. `pool`: one that was ready was taken.
   * `container`: it runs. `hello`: its supervisor has answered. `proof`: it was tried that it holds
   * what it promises. `network`: its way out is open.
   */
  step: 'line' | 'slot' | 'pool' | 'container' | 'hello' | 'proof' | 'network'
  /** Names and numbers of the step. */
  about: string
}

/** A stream to a sandbox that was not handed out yet. */
interface Connection {
  sandbox: ConnectedSandbox
  profile: SandboxProfile
}

export function createConnecting(context: ConnectingContext): Connecting {
  const { backend, ledger, gate, closing } = context
  const { startMs = 120_000, lineMs = 900_000, engineMs = 10_000 } = context.patience ?? {}
  const profileFor = context.profileFor ?? (() => 'default')
  /** While the engine cannot be reached: how long it is waited for, and when it was last tried. */
  let outage: { until: number; triedAt: number } | undefined
  const steps = new Map<string, StartStep[]>()
  const took = (userId: string, step: StartStep['step'], about: string): void => {
    steps.get(userId)?.push({ at: Date.now(), step, about })
  }

  /**
   * Only for a user unknown to engine and ledger: a lost ledger hides no files.
   */
  async function takeFromPool(userId: string): Promise<Connection | undefined> {
    if (context.hasContainer(ownerTag(context.deploymentKey, userId))) return undefined
    const profile = profileFor(userId)
    if (profile !== profileFor(undefined)) return undefined
    const sandbox = (await context.pool.take(userId))?.sandbox
    if (sandbox !== undefined) took(userId, 'pool', sandbox.id.slice(0, 12))
    return sandbox && { sandbox, profile }
  }

  /** The time that it may take counts from when its turn comes. */
  async function inTurn(userId: string): Promise<Connection> {
    const line = AbortSignal.any([closing, AbortSignal.timeout(lineMs)])
    let began = false
    took(userId, 'line', '')
    try {
      return await gate(() => {
        began = true
        return within(startMs, (signal) => startFor(userId, signal))
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

  /**
   * Bringing up goes on from wherever the last try left the container, so it can be tried again as
   * a whole.
   */
  async function whenReachable<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const done = await work()
        outage = undefined
        return done
      } catch (error) {
        if (!(error instanceof SandboxError && error.unreachable)) {
          outage = undefined
          throw error
        }
        const now = performance.now()
        if (outage !== undefined && now - outage.triedAt >= OUTAGE_KNOWN_MS) outage = undefined
        const { until } = outage ?? { until: now + engineMs }
        outage = { until, triedAt: now }
        if (now >= until) throw error
        await sleep(TRY_EVERY_MS, undefined, { signal: closing, ref: false })
      }
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

  async function startFor(userId: string, signal: AbortSignal): Promise<Connection> {
    const slot = await slotFor(userId, context)
    took(userId, 'slot', `uid ${slot.uid}, volume ${slot.volume}`)
    const start = (): Promise<Connection> =>
      startContainer(slot, context, signal, async (opened) => {
        took(userId, 'container', opened.id.slice(0, 12))
        const connection = await handshake(slot, opened, await ledger.nextEpoch(), signal)
        if (context.newerEpoch !== undefined) await connection.sandbox.commands()
        return connection
      })
    try {
      return await start()
    } catch (error) {
      // What a controller that has just been fenced had written before has broken this stream.
      const mayHaveMixed = error instanceof SandboxError && error.code === 'protocol'
      if (context.newerEpoch === undefined || !mayHaveMixed || signal.aborted) throw error
      return start()
    }
  }

  async function handshake(
    { slot, userId }: LedgerSlot,
    { id, stream, profile }: OpenSandbox,
    epoch: number,
    signal: AbortSignal,
  ): Promise<Connection> {
    const key = deriveSandboxKey(context.deploymentKey, id)
    const stateKey = deriveStateKey(context.deploymentKey, slot)
    const disk = context.budget()
    const newerEpoch = async (current: number): Promise<number | undefined> =>
      userId === undefined ? undefined : context.newerEpoch?.(userId, current)
    const sandbox = await connectSandbox({ id, stream, key, stateKey, epoch, newerEpoch, signal, disk })
    return { sandbox, profile }
  }

  async function admitted(userId: string, { sandbox, profile }: Connection): Promise<ConnectedSandbox> {
    try {
      took(userId, 'hello', `protocol ${PROTOCOL_VERSION}, boot ${sandbox.bootId.slice(0, 8)}`)
      await context.prove(sandbox, profile)
      took(userId, 'proof', profile)
      const egress = context.egress?.forUser(userId)
      if (egress) await sandbox.openEgress(egress)
      if (egress) took(userId, 'network', '')
      return sandbox
    } catch (error) {
      await sandbox.close()
      throw error
    }
  }

  return {
    steps: (userId) => steps.get(userId) ?? [],
    forget: (userId) => void steps.delete(userId),

    async connect(userId) {
      try {
        return await whenReachable(async () => {
          steps.set(userId, [])
          return admitted(userId, (await takeFromPool(userId)) ?? (await inTurn(userId)))
        })
      } catch (error) {
        if (closing.aborted) throw new SandboxError('cancelled', 'The controller is closing.')
        throw error
      }
    },

    async reattach(slot, container, epoch) {
      if (slot.userId === undefined) throw new SandboxError('ledger', `Slot ${slot.slot} is not claimed.`)
      checkOwner([container], slot, context)
      return admitted(
        slot.userId,
        await handshake(slot, await open(container, backend, closing), epoch, closing),
      )
    },
  }
}

function shown(ms: number): string {
  return ms < 120_000 ? `${ms / 1_000} seconds` : `${ms / 60_000} minutes`
}
