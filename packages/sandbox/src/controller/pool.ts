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
  /**
   * Warm sandboxes to keep for users who have none yet; `auto` = by how many are asked for; 0 =
   * none.
   */
  size: number | 'auto'
  /**
   * Least milliseconds between the starts of two, and after a claim (there at most 250). Default
   * 1,000.
   */
  everyMs?: number
  /**
   * Milliseconds after the start before the first is made. Default 10,000, so that it does not slow
   * the start down.
   */
  delayMs?: number
}

/**
 * After a claim the engine is left to that user's first command for at most so many milliseconds.
 */
const AFTER_CLAIM_MS = 250

/**
 * Waits in milliseconds before each try to pause a new one: something may still be under way in it.
 */
const PAUSE_AFTER = [0, 50, 200]

export interface Pool {
  /**
   * A warm sandbox, now this user's, in the ledger and by its name; the slot alone where it has to
   * be connected to, or where the user has one already. Undefined when there is none.
   */
  take(userId: string): Promise<{ slot: LedgerSlot; sandbox?: ConnectedSandbox } | undefined>
  /**
   * Take up what an earlier controller left (only the first time since this one leads: later on,
   * what runs may be another controller's), and remove what is of no use any more. What fails is
   * logged, and looked at again the next time. Never rejects.
   */
  settle(rows: LedgerSlot[], containers: BackendSandbox[]): Promise<void>
  /** Make what is missing, in the background. */
  refill(): void
  /** Whether this slot is being made, connected to or removed here. */
  isBusy(slot: string): boolean
  /** Resolves when what is missing was made, or could not be made just now. Never rejects. */
  filled(): Promise<void>
  /** Make no more, close every connection. Containers stay. */
  close(): Promise<void>
}

interface PoolContext extends WarmContext {
  /** At most so many containers are started at once, here and elsewhere. */
  gate: <T>(work: () => Promise<T>) => Promise<T>
  /** Whether this controller makes, takes up and removes them; all controllers take from them. */
  leads: () => boolean
  /** Aborts when the controller closes: what is being made or reattached is left as it is. */
  closing: AbortSignal
  log: (message: string, error: unknown) => void
}

/**
 * Sandboxes made in advance. Each serves one user for ever; the ledger decides which.
 */
export function createPool(options: PoolOptions, context: PoolContext): Pool {
  const { backend, ledger, deploymentId } = context
  const everyMs = options.everyMs ?? 1_000
  const target = createPoolTarget(options.size, everyMs)
  const ready: Warm[] = []
  /** Slots that are being made, taken up or removed here just now. */
  const busy = new Set<string>()
  /**
   * Slots of ours whose stream broke: to be taken up again, or they would keep their place for the
   * length of a lease.
   */
  const dropped = new Set<string>()
  const closing = new AbortController()
  context.closing.addEventListener('abort', () => closing.abort(), { once: true })
  let filling: Promise<void> | undefined
  let notBefore = performance.now() + (options.delayMs ?? 10_000)
  let failures = 0
  let settled = false

  async function connect(slot: LedgerSlot, container: BackendSandbox): Promise<void> {
    const entry = await openWarm(slot, container, context, closing.signal)
    const { sandbox } = entry
    void sandbox.closed.then((why) => {
      entry.ended = true
      if (!forget(entry) || why === undefined) return
      if (why.code !== 'fenced') {
        // It is ours, and only its stream is gone.
        dropped.add(slot.slot)
        return
      }
      // Another controller's from now on: it was claimed there, or that one leads now.
      if (!context.leads()) return
      target.asked()
      setTimeout(wakeFirst, AFTER_CLAIM_MS).unref()
      refill()
    })
    dropped.delete(slot.slot)
    ready.push(entry)
    // The first one stays awake: waking costs more than all the rest of a claim.
    for (const ms of PAUSE_AFTER) {
      if (ready[0] === entry || !ready.includes(entry) || sandbox.paused) return
      await sleep(ms, undefined, { signal: closing.signal, ref: false })
      await rest(sandbox)
    }
  }

  /** Returns whether it was there. */
  function forget(entry: Warm): boolean {
    const at = ready.indexOf(entry)
    if (at >= 0) ready.splice(at, 1)
    return at >= 0
  }

  /** The claim failed: return it to the pool. */
  async function returnToPool(entry: Warm): Promise<void> {
    // All others were closed meanwhile.
    if (closing.signal.aborted) await entry.sandbox.close()
    else if (entry.ended) dropped.add(entry.slot.slot)
    else ready.unshift(entry)
  }

  async function rest(sandbox: ConnectedSandbox): Promise<void> {
    try {
      if (!sandbox.paused && (await backend.inventory.capabilities()).pause) await pause(sandbox, backend)
    } catch (error) {
      context.log('a warm sandbox could not be paused', error)
    }
  }

  /** The next one wakes up, so that it can be taken at once. */
  function wakeFirst(): void {
    const [first] = ready
    if (first?.sandbox.paused && !closing.signal.aborted)
      first.sandbox
        .commands()
        .catch((error: unknown) => context.log('a warm sandbox could not be resumed', error))
  }

  async function make(): Promise<void> {
    const started = performance.now()
    const slot = await newSlot(await backend.list({}), context)
    busy.add(slot.slot)
    try {
      await ledger.add(slot, target.current())
      try {
        const spec = specOf(slot, poolName(deploymentId, slot.slot), context)
        await connect(slot, await backend.create(spec, closing.signal))
      } catch (error) {
        // Left for the next start, as it is.
        if (!closing.signal.aborted) await removeFailed(slot, error)
        throw error
      }
    } finally {
      busy.delete(slot.slot)
    }
    target.made(performance.now() - started)
  }

  /**
   * It does not serve us. Another controller's by now, if that is why; else it goes, or is taken up
   * again if it cannot go.
   */
  async function removeFailed(slot: LedgerSlot, why: unknown): Promise<void> {
    if (why instanceof SandboxError && why.code === 'fenced') return
    try {
      await drain(slot, context)
    } catch (error) {
      dropped.add(slot.slot)
      throw error
    }
  }

  async function fill(): Promise<void> {
    while (!closing.signal.aborted && context.leads()) {
      const wait = notBefore - performance.now()
      if (wait > 0) await sleep(wait, undefined, { signal: closing.signal, ref: false })
      const warm = (await ledger.list()).filter(({ state }) => state === 'warm').length
      if (warm >= target.current()) return
      notBefore = performance.now() + everyMs
      await context.gate(make)
      failures = 0
    }
  }

  function refill(): void {
    if (options.size === 0 || filling || closing.signal.aborted || !context.leads()) return
    filling = fill()
      .catch((error: unknown) => {
        if (closing.signal.aborted) return
        if (error instanceof SandboxError && error.code === 'limit_reached') return
        failures += 1
        notBefore = performance.now() + backoffMs(failures + 1, { firstMs: everyMs, longestMs: 60_000 })
        if (failures === 1) context.log('a warm sandbox could not be made', error)
      })
      .finally(() => {
        filling = undefined
      })
  }

  /** Undefined when another claim was first. */
  async function claim(slot: string, userId: string): Promise<LedgerSlot | undefined> {
    try {
      return await ledger.claim(slot, userId)
    } catch (error) {
      if (error instanceof SandboxError && ['exists', 'not_found'].includes(error.code)) return undefined
      throw error
    }
  }

  async function takeReady(entry: Warm, userId: string): ReturnType<Pool['take']> {
    let slot: LedgerSlot | undefined
    try {
      slot = await claim(entry.slot.slot, userId)
    } catch (error) {
      await returnToPool(entry)
      throw error
    }
    if (!slot || slot.slot !== entry.slot.slot) {
      if (slot) await returnToPool(entry)
      else await entry.sandbox.close()
      return slot && { slot }
    }
    target.asked()
    if (!context.leads()) {
      // The one that leads now may be about to take its stream over; one opened from now on stays.
      await entry.sandbox.close()
      return { slot }
    }
    const pauseMs = Math.min(AFTER_CLAIM_MS, everyMs)
    notBefore = Math.max(notBefore, performance.now() + pauseMs)
    setTimeout(wakeFirst, pauseMs).unref()
    // Sent now, so that it wakes while it is renamed; its first command must not run before that.
    if (entry.sandbox.paused) entry.sandbox.commands().catch(() => undefined)
    try {
      await backend.claim(entry.sandbox.id, ownerOf(slot, slot.generation, context))
      return { slot, sandbox: entry.sandbox }
    } catch (error) {
      // The next connect gives it its name first.
      context.log('a claimed sandbox could not be given its name', error)
      await entry.sandbox.close()
      return { slot }
    }
  }

  /** A warm sandbox that another controller made: not connected to, but there. */
  async function takeOther(userId: string): ReturnType<Pool['take']> {
    for (const row of await ledger.list()) {
      if (row.state !== 'warm' || busy.has(row.slot)) continue
      const containers = await containersOf(row.slot, context)
      const [container] = containers
      if (containers.length !== 1 || !container || !hasPoolName(container, deploymentId)) continue
      if (await differs(container, row, context)) continue
      if (await isWithoutVolume(container, row, backend)) continue
      const slot = await claim(row.slot, userId)
      if (slot) return { slot }
    }
    return undefined
  }

  return {
    async take(userId) {
      if (options.size === 0 && ready.length === 0) return undefined
      try {
        for (let entry = ready.shift(); entry; entry = ready.shift()) {
          const taken = await takeReady(entry, userId)
          if (taken) return taken
        }
        // A claim above has already returned the slot of a user that has one.
        if (await ledger.find(userId)) return undefined
        target.asked()
        return await takeOther(userId)
      } finally {
        refill()
      }
    },

    async settle(rows, containers) {
      if (!context.leads()) {
        // What the one that leads meanwhile has made is taken up.
        settled = false
        return
      }
      for (const row of rows) {
        if (closing.signal.aborted) return
        if (row.state !== 'warm' || busy.has(row.slot) || ready.some(({ slot }) => slot.slot === row.slot))
          continue
        const own = containers.filter((container) => container.labels[LABEL.slot] === row.slot)
        const [container] = own
        // None: being made elsewhere, or never made. More, or another name: it is claimed on the
        // engine.
        if (own.length !== 1 || !container || !hasPoolName(container, deploymentId)) continue
        busy.add(row.slot)
        try {
          await context.gate(() => settleOne(row, container, !settled || dropped.delete(row.slot)))
        } catch (error) {
          if (closing.signal.aborted) return
          context.log('a warm sandbox could not be adopted or removed', error)
        } finally {
          busy.delete(row.slot)
        }
      }
      settled = true
      // One that was looked at just when it was to be paused.
      for (const { sandbox } of ready.slice(1)) await rest(sandbox)
      for (const extra of ready.splice(target.current())) {
        await extra.sandbox.close()
        await drain(extra.slot, context).catch((error: unknown) =>
          context.log('a surplus warm sandbox could not be removed', error),
        )
      }
    },

    refill,
    isBusy: (slot) => busy.has(slot),
    async filled() {
      refill()
      await filling
    },

    async close() {
      closing.abort()
      await filling
      await Promise.all(ready.splice(0).map(({ sandbox }) => sandbox.close()))
    },
  }

  async function settleOne(row: LedgerSlot, container: BackendSandbox, first: boolean): Promise<void> {
    const wanted =
      ready.length < target.current() &&
      !(await differs(container, row, context)) &&
      !(await isWithoutVolume(container, row, backend))
    if (!wanted) return drain(row, context)
    if (!first && (container.state === 'running' || container.state === 'paused')) return
    try {
      await connect(row, container)
    } catch (error) {
      if (closing.signal.aborted || (error instanceof SandboxError && error.code === 'fenced')) return
      context.log('a warm sandbox does not answer', error)
      await removeFailed(row, error)
    }
  }
}
