import { setTimeout as sleep } from 'node:timers/promises'

import { backoffMs } from '#shared/async/backoff'
import type { BackendSandbox } from '../backend.ts'
import { containersOf, differs, isWithoutVolume, ownerOf, specOf } from './start-container.ts'
import type { ConnectedSandbox } from '../sbxd/client.ts'
import { SandboxError } from '../errors.ts'
import { pause } from './idle.ts'
import { LABEL, poolName } from '../names.ts'
import type { LedgerSlot } from '../ledger.ts'
import { createPoolTarget } from './pool-target.ts'
import { newSlot } from './slots.ts'
import { drain, hasPoolName, openWarm, type Warm, type WarmContext } from './warm.ts'

export interface PoolOptions {
  /** Warm sandboxes for users who have none yet; `auto` follows the demand; 0 = none. */
  size: number | 'auto'
  /**
   * Minimum milliseconds between two starts, and after a claim (there at most 250). Default 1,000.
   */
  everyMs?: number
  /**
   * Milliseconds after the controller's start before the first one is created, so that it does not
   * slow the start down. Default 10,000.
   */
  delayMs?: number
}

/**
 * After a claim the engine is left to that user's first command for at most so many milliseconds.
 */
const AFTER_CLAIM_MS = 250

/** Milliseconds before each try to pause a new sandbox, in which work may still be in progress. */
const PAUSE_AFTER = [0, 50, 200]

interface PoolContext extends WarmContext {
  /** Bounds the containers that are started at once, here and elsewhere. */
  gate: <T>(work: () => Promise<T>) => Promise<T>
  /** This controller creates, adopts and removes warm sandboxes; all controllers take from them. */
  leads: () => boolean
  /** Aborts when the controller closes: unfinished sandboxes are left as they are. */
  closing: AbortSignal
  log: (message: string, error: unknown) => void
}

/** The slot alone where the caller has to connect, or where the user had a slot already. */
interface Taken {
  slot: LedgerSlot
  sandbox?: ConnectedSandbox
}

/** Sandboxes created in advance. Each serves one user for ever; the ledger decides which. */
export class Pool {
  readonly #options: PoolOptions
  readonly #context: PoolContext
  readonly #everyMs: number
  readonly #target: ReturnType<typeof createPoolTarget>
  readonly #ready: Warm[] = []
  /** Slots that are created, adopted or removed right now. */
  readonly #busy = new Set<string>()
  /**
   * Our slots whose stream broke: not adopted again, they would stay taken until the lease expires.
   */
  readonly #dropped = new Set<string>()
  readonly #closing = new AbortController()
  #filling: Promise<void> | undefined
  #notBefore: number
  #failures = 0
  #settled = false

  constructor(options: PoolOptions, context: PoolContext) {
    this.#options = options
    this.#context = context
    this.#everyMs = options.everyMs ?? 1_000
    this.#target = createPoolTarget(options.size, this.#everyMs)
    this.#notBefore = performance.now() + (options.delayMs ?? 10_000)
    context.closing.addEventListener('abort', () => this.#closing.abort(), { once: true })
  }

  /** A warm sandbox that now belongs to this user, in the ledger and by its name. */
  async take(userId: string): Promise<Taken | undefined> {
    if (this.#options.size === 0 && this.#ready.length === 0) return undefined
    try {
      for (let entry = this.#ready.shift(); entry; entry = this.#ready.shift()) {
        const taken = await this.#takeReady(entry, userId)
        if (taken) return taken
      }
      // A claim above has already returned the slot of a user that has one.
      if (await this.#context.ledger.find(userId)) return undefined
      this.#target.asked()
      return await this.#takeOther(userId)
    } finally {
      this.refill()
    }
  }

  /**
   * Adopts the warm slots of an earlier controller (only at the first call since this one leads:
   * later, a running one may be another controller's) and removes unusable ones. A failure is
   * logged, and retried at the next call. Never rejects.
   */
  async settle(rows: readonly LedgerSlot[], containers: readonly BackendSandbox[]): Promise<void> {
    const { leads, deploymentId, gate, log } = this.#context
    if (!leads()) {
      // Slots created by the other leader are adopted when this one leads again.
      this.#settled = false
      return
    }
    for (const row of rows) {
      if (this.#closing.signal.aborted) return
      if (row.state !== 'warm' || this.#busy.has(row.slot) || this.#isReady(row)) continue
      const own = containers.filter((container) => container.labels[LABEL.slot] === row.slot)
      const [container] = own
      // None: created elsewhere, or never. More, or another name: it is claimed on the engine.
      if (own.length !== 1 || !container || !hasPoolName(container, deploymentId)) continue
      this.#busy.add(row.slot)
      try {
        await gate(() => this.#settleOne(row, container, !this.#settled || this.#dropped.delete(row.slot)))
      } catch (error) {
        if (this.#closing.signal.aborted) return
        log('a warm sandbox could not be adopted or removed', error)
      } finally {
        this.#busy.delete(row.slot)
      }
    }
    this.#settled = true
    await this.#trim()
  }

  /** Creates missing sandboxes in the background. */
  refill(): void {
    const closing = this.#closing.signal
    if (this.#options.size === 0 || this.#filling || closing.aborted || !this.#context.leads()) return
    this.#filling = this.#fill()
      .catch((error: unknown) => {
        if (closing.aborted) return
        if (error instanceof SandboxError && error.code === 'limit_reached') return
        this.#failures += 1
        const wait = backoffMs(this.#failures + 1, { firstMs: this.#everyMs, longestMs: 60_000 })
        this.#notBefore = performance.now() + wait
        if (this.#failures === 1) this.#context.log('a warm sandbox could not be made', error)
      })
      .finally(() => {
        this.#filling = undefined
      })
  }

  /** This slot is being created, adopted or removed here. */
  isBusy(slot: string): boolean {
    return this.#busy.has(slot)
  }

  /** Resolves when the missing ones are created, or cannot be for now. Never rejects. */
  async filled(): Promise<void> {
    this.refill()
    await this.#filling
  }

  /** Stops creating and closes every connection. Containers stay. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#filling
    await Promise.all(this.#ready.splice(0).map(({ sandbox }) => sandbox.close()))
  }

  async #connect(slot: LedgerSlot, container: BackendSandbox): Promise<void> {
    const entry = await openWarm(slot, container, this.#context, this.#closing.signal)
    void entry.sandbox.closed.then((why) => this.#onClosed(entry, why))
    this.#dropped.delete(slot.slot)
    this.#ready.push(entry)
    // The first one stays awake: resuming costs more than all the rest of a claim.
    for (const ms of PAUSE_AFTER) {
      if (this.#ready[0] === entry || !this.#ready.includes(entry) || entry.sandbox.paused) return
      await sleep(ms, undefined, { signal: this.#closing.signal, ref: false })
      await this.#pause(entry.sandbox)
    }
  }

  #onClosed(entry: Warm, why: SandboxError | undefined): void {
    entry.ended = true
    if (!this.#forget(entry) || why === undefined) return
    if (why.code !== 'fenced') {
      // It is ours, and only its stream is lost.
      this.#dropped.add(entry.slot.slot)
      return
    }
    // Another controller's from now on: it was claimed there, or that one leads now.
    if (!this.#context.leads()) return
    this.#target.asked()
    setTimeout(() => this.#wakeFirst(), AFTER_CLAIM_MS).unref()
    this.refill()
  }

  #isReady(row: LedgerSlot): boolean {
    return this.#ready.some(({ slot }) => slot.slot === row.slot)
  }

  /** Returns whether it was there. */
  #forget(entry: Warm): boolean {
    const at = this.#ready.indexOf(entry)
    if (at >= 0) this.#ready.splice(at, 1)
    return at >= 0
  }

  /** After a failed claim. */
  async #returnToPool(entry: Warm): Promise<void> {
    // `close` has closed all others.
    if (this.#closing.signal.aborted) await entry.sandbox.close()
    else if (entry.ended) this.#dropped.add(entry.slot.slot)
    else this.#ready.unshift(entry)
  }

  async #pause(sandbox: ConnectedSandbox): Promise<void> {
    const { backend } = this.#context
    try {
      if (!sandbox.paused && (await backend.inventory.capabilities()).pause) await pause(sandbox, backend)
    } catch (error) {
      this.#context.log('a warm sandbox could not be paused', error)
    }
  }

  /** Resumes the next one, so that it can be taken at once. */
  #wakeFirst(): void {
    const [first] = this.#ready
    if (first?.sandbox.paused && !this.#closing.signal.aborted)
      first.sandbox
        .commands()
        .catch((error: unknown) => this.#context.log('a warm sandbox could not be resumed', error))
  }

  async #fill(): Promise<void> {
    while (!this.#closing.signal.aborted && this.#context.leads()) {
      const wait = this.#notBefore - performance.now()
      if (wait > 0) await sleep(wait, undefined, { signal: this.#closing.signal, ref: false })
      const warm = (await this.#context.ledger.list()).filter(({ state }) => state === 'warm').length
      if (warm >= this.#target.current()) return
      this.#notBefore = performance.now() + this.#everyMs
      await this.#context.gate(() => this.#make())
      this.#failures = 0
    }
  }

  async #make(): Promise<void> {
    const { backend, ledger, deploymentId } = this.#context
    const started = performance.now()
    const slot = await newSlot(await backend.list({}), this.#context)
    this.#busy.add(slot.slot)
    try {
      await ledger.add(slot, this.#target.current())
      try {
        const spec = specOf(slot, poolName(deploymentId, slot.slot), this.#context)
        await this.#connect(slot, await backend.create(spec, this.#closing.signal))
      } catch (error) {
        // Left for the next start, as it is.
        if (!this.#closing.signal.aborted) await this.#removeFailed(slot, error)
        throw error
      }
    } finally {
      this.#busy.delete(slot.slot)
    }
    this.#target.made(performance.now() - started)
  }

  /**
   * Removes an unusable slot, unless another controller has it by now; adopts it again if that
   * fails.
   */
  async #removeFailed(slot: LedgerSlot, why: unknown): Promise<void> {
    if (why instanceof SandboxError && why.code === 'fenced') return
    try {
      await drain(slot, this.#context)
    } catch (error) {
      this.#dropped.add(slot.slot)
      throw error
    }
  }

  /** Undefined when another claim was first. */
  async #claim(slot: string, userId: string): Promise<LedgerSlot | undefined> {
    try {
      return await this.#context.ledger.claim(slot, userId)
    } catch (error) {
      if (error instanceof SandboxError && ['exists', 'not_found'].includes(error.code)) return undefined
      throw error
    }
  }

  async #takeReady(entry: Warm, userId: string): Promise<Taken | undefined> {
    let slot: LedgerSlot | undefined
    try {
      slot = await this.#claim(entry.slot.slot, userId)
    } catch (error) {
      await this.#returnToPool(entry)
      throw error
    }
    if (!slot || slot.slot !== entry.slot.slot) {
      if (slot) await this.#returnToPool(entry)
      else await entry.sandbox.close()
      return slot && { slot }
    }
    this.#target.asked()
    if (!this.#context.leads()) {
      // The current leader may be about to take its stream over; one opened from now on stays.
      await entry.sandbox.close()
      return { slot }
    }
    const pauseMs = Math.min(AFTER_CLAIM_MS, this.#everyMs)
    this.#notBefore = Math.max(this.#notBefore, performance.now() + pauseMs)
    setTimeout(() => this.#wakeFirst(), pauseMs).unref()
    return this.#nameAfterOwner(entry, slot)
  }

  async #nameAfterOwner({ sandbox }: Warm, slot: LedgerSlot): Promise<Taken> {
    // Sent now, so that it resumes during the rename; its first command must not run before that.
    if (sandbox.paused) sandbox.commands().catch(() => undefined)
    try {
      await this.#context.backend.claim(sandbox.id, ownerOf(slot, slot.generation, this.#context))
      return { slot, sandbox }
    } catch (error) {
      // The next connect gives it its name first.
      this.#context.log('a claimed sandbox could not be given its name', error)
      await sandbox.close()
      return { slot }
    }
  }

  /** A warm sandbox that another controller made: it exists and is not connected to. */
  async #takeOther(userId: string): Promise<Taken | undefined> {
    const { backend, deploymentId, ledger } = this.#context
    for (const row of await ledger.list()) {
      if (row.state !== 'warm' || this.#busy.has(row.slot)) continue
      const containers = await containersOf(row.slot, this.#context)
      const [container] = containers
      if (containers.length !== 1 || !container || !hasPoolName(container, deploymentId)) continue
      if (await differs(container, row, this.#context)) continue
      if (await isWithoutVolume(container, row, backend)) continue
      const slot = await this.#claim(row.slot, userId)
      if (slot) return { slot }
    }
    return undefined
  }

  async #settleOne(row: LedgerSlot, container: BackendSandbox, first: boolean): Promise<void> {
    const wanted =
      this.#ready.length < this.#target.current() &&
      !(await differs(container, row, this.#context)) &&
      !(await isWithoutVolume(container, row, this.#context.backend))
    if (!wanted) return drain(row, this.#context)
    if (!first && (container.state === 'running' || container.state === 'paused')) return
    try {
      await this.#connect(row, container)
    } catch (error) {
      if (this.#closing.signal.aborted || (error instanceof SandboxError && error.code === 'fenced')) return
      this.#context.log('a warm sandbox does not answer', error)
      await this.#removeFailed(row, error)
    }
  }

  async #trim(): Promise<void> {
    // One that was checked just before it was to be paused.
    for (const { sandbox } of this.#ready.slice(1)) await this.#pause(sandbox)
    for (const extra of this.#ready.splice(this.#target.current())) {
      await extra.sandbox.close()
      await drain(extra.slot, this.#context).catch((error: unknown) =>
        this.#context.log('a surplus warm sandbox could not be removed', error),
      )
    }
  }
}
