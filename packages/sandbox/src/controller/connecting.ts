import { setTimeout as sleep } from 'node:timers/promises'

import type { BackendSandbox, SandboxProfile } from '../backend.ts'
import { connectOpened, open, type OpenSandbox } from './connect-opened.ts'
import { startContainer, type ContainerOptions, checkOwner } from './start-container.ts'
import type { ConnectedSandbox } from '../sbxd/client.ts'
import type { Egress } from '../egress/egress.ts'
import type { Prove } from './proof.ts'
import { SandboxError } from '../errors.ts'
import { deriveStateKey } from './key.ts'
import type { Gate } from '#shared/async/keyed-lock'
import type { LedgerSlot } from '../ledger.ts'
import { PROTOCOL_VERSION } from '../sbxd/protocol/frames.ts'
import { ownerTag } from '../names.ts'
import type { Pool } from './pool.ts'
import type { DiskBudget } from '../sandbox.ts'
import { slotFor } from './slots.ts'

/** Time limits of an acquire, in milliseconds. */
export interface Patience {
  /** Creating or starting a sandbox, once it has a slot in the start gate. Default 120,000. */
  startMs?: number
  /**
   * Waiting for that slot: on a slow machine two hundred others may come first. Default 900,000.
   */
  lineMs?: number
  /**
   * Waiting for an unreachable engine, by all callers together: its gate is restarted within
   * seconds. A later call fails at its first try. Default 10,000.
   */
  engineMs?: number
}

/** Milliseconds between two tries to reach the engine. */
const TRY_EVERY_MS = 250
/** After so long without a try, an unreachable engine is waited for again. */
const OUTAGE_KNOWN_MS = 60_000

export interface ConnectingContext extends ContainerOptions {
  /** Bounds the containers that are started at once, here and elsewhere. */
  gate: Gate
  pool: Pick<Pool, 'take'>
  /** The current disk budget of a workspace. */
  budget: () => DiskBudget
  prove: Prove
  /** The engine may have a container of this owner tag, see `Reconciler`. */
  hasContainer: (owner: string) => boolean
  /** Network access of sandboxes. Absent: none. */
  egress?: Egress
  /** `NewerEpoch` for this user's sandbox. Absent: a greater epoch is another controller's. */
  newerEpoch?: ((userId: string, current: number) => Promise<number | undefined>) | undefined
  /** Aborts when the controller closes. */
  closing: AbortSignal
  patience?: Patience
}

/** One step on the way to a ready sandbox. */
export interface StartStep {
  /** Epoch milliseconds. */
  at: number
  /**
   * `line`: it is queued. `slot`: its slot is known. `pool`: a warm one was taken. `container`: it
   * runs. `hello`: its supervisor has answered. `proof`: its isolation was verified. `network`: its
   * egress is open.
   */
  step: 'line' | 'slot' | 'pool' | 'container' | 'hello' | 'proof' | 'network'
  /** Names and numbers of the step. */
  about: string
}

/** A stream to a sandbox. */
export interface Connection {
  sandbox: ConnectedSandbox
  profile: SandboxProfile
  /** False: `admit` is due before anything else is asked of it. */
  isAdmitted: boolean
}

/** Opens streams to users' sandboxes. */
export class Connecting {
  readonly #context: ConnectingContext
  readonly #startMs: number
  readonly #lineMs: number
  readonly #outage: Outage
  readonly #steps = new Map<string, StartStep[]>()

  constructor(context: ConnectingContext) {
    const { startMs = 120_000, lineMs = 900_000, engineMs = 10_000 } = context.patience ?? {}
    this.#context = context
    this.#startMs = startMs
    this.#lineMs = lineMs
    this.#outage = new Outage(engineMs, context.closing)
  }

  /** Steps of this user's last `connect` so far; empty before the first one. */
  steps(userId: string): readonly StartStep[] {
    return this.#steps.get(userId) ?? []
  }

  /** Drops the steps of a connection that is closed. */
  forget(userId: string): void {
    this.#steps.delete(userId)
  }

  /**
   * From the pool, or started when a slot is free. Rejects with a `SandboxError`, `cancelled` when
   * the controller closes.
   */
  async connect(userId: string): Promise<Connection> {
    try {
      return await this.#outage.whenReachable(async () => {
        this.#steps.set(userId, [])
        return this.#admitted(userId, (await this.#takeFromPool(userId)) ?? (await this.#queued(userId)))
      })
    } catch (error) {
      if (this.#context.closing.aborted) throw new SandboxError('cancelled', 'The controller is closing.')
      throw error
    }
  }

  /**
   * To this running container of a claimed slot. Where each boot has a proof of its own, `admit` is
   * left to the next call: thirty proofs would delay the streams by seconds. Rejects with a
   * `SandboxError`.
   */
  async reattach(slot: LedgerSlot, container: BackendSandbox, epoch: number): Promise<Connection> {
    const { backend, closing } = this.#context
    if (slot.userId === undefined) throw new SandboxError('ledger', `Slot ${slot.slot} is not claimed.`)
    checkOwner([container], slot, this.#context)
    const opened = await open(container, backend, closing)
    const connection = await this.#handshake(slot, opened, epoch, closing)
    return backend.inventory.unreachable === undefined ? this.#admitted(slot.userId, connection) : connection
  }

  /**
   * Proves the sandbox, then opens its egress. Rejects with a `SandboxError`; the stream is then to
   * be closed.
   */
  async admit(userId: string, { sandbox, profile }: Connection): Promise<void> {
    const { egress, prove } = this.#context
    await prove(sandbox, profile)
    this.#took(userId, 'proof', profile)
    const user = egress?.forUser(userId)
    if (user === undefined) return
    await sandbox.openEgress(user)
    this.#took(userId, 'network', '')
  }

  #took(userId: string, step: StartStep['step'], about: string): void {
    this.#steps.get(userId)?.push({ at: Date.now(), step, about })
  }

  /** Only for a user unknown to engine and ledger: a lost ledger hides no files. */
  async #takeFromPool(userId: string): Promise<Connection | undefined> {
    const { hasContainer, deploymentKey, pool, profileFor = () => 'default' as const } = this.#context
    if (hasContainer(ownerTag(deploymentKey, userId))) return undefined
    const profile = profileFor(userId)
    if (profile !== profileFor(undefined)) return undefined
    const sandbox = (await pool.take(userId))?.sandbox
    if (sandbox !== undefined) this.#took(userId, 'pool', sandbox.id.slice(0, 12))
    return sandbox && { sandbox, profile, isAdmitted: false }
  }

  /** The start's own time limit begins when it leaves the queue. */
  async #queued(userId: string): Promise<Connection> {
    const { gate, closing } = this.#context
    const limit = AbortSignal.any([closing, AbortSignal.timeout(this.#lineMs)])
    let began = false
    this.#took(userId, 'line', '')
    try {
      return await gate(() => {
        began = true
        return within(this.#startMs, closing, (signal) => this.#startFor(userId, signal))
      }, limit)
    } catch (error) {
      if (began || !limit.aborted) throw error
      throw new SandboxError(
        'timeout',
        `The sandbox was still queued after ${shown(this.#lineMs)}: very many sandboxes are being started. Try again later.`,
        { cause: error },
      )
    }
  }

  async #startFor(userId: string, signal: AbortSignal): Promise<Connection> {
    const context = this.#context
    const slot = await slotFor(userId, context)
    this.#took(userId, 'slot', `uid ${slot.uid}, volume ${slot.volume}`)
    const start = (): Promise<Connection> =>
      startContainer(slot, context, signal, async (opened) => {
        this.#took(userId, 'container', opened.id.slice(0, 12))
        const connection = await this.#handshake(slot, opened, await context.ledger.nextEpoch(), signal)
        if (context.newerEpoch !== undefined) await connection.sandbox.commands()
        return connection
      })
    try {
      return await start()
    } catch (error) {
      // Bytes that a controller had written just before it was fenced have broken this stream.
      const mayHaveMixed = error instanceof SandboxError && error.code === 'protocol'
      if (context.newerEpoch === undefined || !mayHaveMixed || signal.aborted) throw error
      return start()
    }
  }

  async #handshake(
    { slot, userId }: LedgerSlot,
    opened: OpenSandbox,
    epoch: number,
    signal: AbortSignal,
  ): Promise<Connection> {
    const context = this.#context
    const stateKey = deriveStateKey(context.deploymentKey, slot)
    const disk = context.budget()
    const newerEpoch = async (current: number): Promise<number | undefined> =>
      userId === undefined ? undefined : context.newerEpoch?.(userId, current)
    const profile = context.profileFor?.(userId) ?? 'default'
    const connection = { stateKey, epoch, newerEpoch, signal, disk, profile }
    const sandbox = await connectOpened(slot, opened, context, connection)
    return { sandbox, profile: opened.profile, isAdmitted: false }
  }

  async #admitted(userId: string, connection: Connection): Promise<Connection> {
    const { sandbox } = connection
    try {
      this.#took(userId, 'hello', `protocol ${PROTOCOL_VERSION}, boot ${sandbox.bootId.slice(0, 8)}`)
      await this.admit(userId, connection)
      return { ...connection, isAdmitted: true }
    } catch (error) {
      await sandbox.close()
      throw error
    }
  }
}

/** An unreachable engine, waited for by all callers together. */
class Outage {
  readonly #engineMs: number
  readonly #closing: AbortSignal
  #current: { until: number; triedAt: number } | undefined

  constructor(engineMs: number, closing: AbortSignal) {
    this.#engineMs = engineMs
    this.#closing = closing
  }

  /** `work` must be repeatable as a whole, as starting a container is from any state. */
  async whenReachable<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const done = await work()
        this.#current = undefined
        return done
      } catch (error) {
        if (!(error instanceof SandboxError && error.unreachable)) {
          this.#current = undefined
          throw error
        }
        const now = performance.now()
        if (now >= this.#failedAt(now)) throw error
        await sleep(TRY_EVERY_MS, undefined, { signal: this.#closing, ref: false })
      }
    }
  }

  /** Records a failed try. Returns when to give up. */
  #failedAt(now: number): number {
    const current = this.#current
    const known = current !== undefined && now - current.triedAt < OUTAGE_KNOWN_MS ? current : undefined
    const until = known?.until ?? now + this.#engineMs
    this.#current = { until, triedAt: now }
    return until
  }
}

async function within<T>(
  ms: number,
  closing: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = AbortSignal.timeout(ms)
  try {
    return await work(AbortSignal.any([closing, deadline]))
  } catch (error) {
    if (!deadline.aborted) throw error
    throw new SandboxError('timeout', `The sandbox was not ready within ${shown(ms)}. Try again.`, {
      cause: error,
    })
  }
}

function shown(ms: number): string {
  return ms < 120_000 ? `${ms / 1_000} seconds` : `${ms / 60_000} minutes`
}
