import { setTimeout as sleep } from 'node:timers/promises'

import type { BackendSandbox, SandboxBackend } from '../backend.ts'
import { type LiveSandbox, sweepIdle } from './idle.ts'
import { createGate } from '#shared/async/keyed-lock'
import type { LedgerSlot, SandboxLedger } from '../ledger.ts'
import type { Pool } from './pool.ts'
import { claimedContainers, type Seen } from './reconciler.ts'
import type { SharedEngine } from './shared-engine.ts'
import type { UserSandboxes } from './user-sandboxes.ts'

/** Streams that are opened at once after a start. */
const REATTACH_AT_ONCE = 32

interface HousekeepingOptions {
  deploymentId: string
  backend: SandboxBackend
  ledger: Pick<SandboxLedger, 'nextEpoch'>
  pool: Pick<Pool, 'settle' | 'refill'>
  userSandboxes: Pick<UserSandboxes, 'liveSandboxes' | 'isConnected' | 'reattach' | 'stop' | 'stopIdle'>
  /** One look at engine and ledger. */
  look: () => Promise<Seen>
  lookEveryMs: number
  /** Milliseconds; 0 = never. */
  idle: { pauseAfterMs: number; stopAfterMs: number }
  closing: AbortSignal
  share: SharedEngine
  log: (message: string, details: { userId?: string; error?: unknown }) => void
}

interface Housekeeping {
  /** Begin, once. Resolves after the first round; never rejects. */
  begin(): Promise<void>
  /** Resolves when nothing is under way any more, after `closing`. */
  ended(): Promise<void>
}

/**
 * What a controller does without a request. A round that fails is logged, and the next one
 * comes all the same.
 */
export function createHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { backend, userSandboxes, closing, share } = options
  const { pauseAfterMs, stopAfterMs } = options.idle
  let first: Promise<void> | undefined
  let loops: Promise<unknown> = Promise.resolve()
  /**
   * Paused containers without a stream, of an earlier controller, and since when they are known.
   */
  let asleep = new Map<string, number>()

  async function every(ms: number, work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await sleep(ms, undefined, { signal: closing, ref: false })
      } catch {
        // Only ever because of `closing`.
        return
      }
      await work()
    }
  }

  async function round(): Promise<void> {
    try {
      const seen = await options.look()
      const claimed = claimedContainers(seen, options.deploymentId)
      await reattachAll(claimed, seen.at)
      await resumePaused(claimed)
      await stopUnconnected(claimed, seen.at)
      await options.pool.settle(seen.rows, seen.containers)
      options.pool.refill()
    } catch (error) {
      if (!closing.aborted) options.log('a maintenance round failed; the next one tries again', { error })
    }
  }

  /**
   * One list, one epoch, and then only streams: two hundred are back within a second or two. Also
   * of users whose controller has ended: what runs in there must go on.
   */
  async function reattachAll(claimed: [LedgerSlot, BackendSandbox][], seenAt: number): Promise<void> {
    const wanted = claimed.flatMap(([slot, container]) =>
      container.state === 'running' && slot.userId !== undefined && !userSandboxes.isConnected(slot.userId)
        ? [{ userId: slot.userId, slot, container }]
        : [],
    )
    const ours = await takeOver(wanted)
    if (ours.length === 0) return
    const epoch = await options.ledger.nextEpoch()
    const gate = createGate(REATTACH_AT_ONCE)
    await Promise.all(
      ours.map(({ userId, slot, container }) =>
        gate(async () => {
          try {
            await userSandboxes.reattach(slot, container, epoch, seenAt)
          } catch (error) {
            if (!closing.aborted)
              options.log('the stream to a running sandbox could not be opened', { userId, error })
          }
        }),
      ),
    )
  }

  async function takeOver<Of extends { userId: string }>(wanted: readonly Of[]): Promise<Of[]> {
    if (wanted.length === 0) return []
    const ours = await share.takeOver(wanted.map(({ userId }) => userId))
    return wanted.filter(({ userId }) => ours.has(userId))
  }

  /** Paused from outside while in use: by an operator, or an engine that died half-way. */
  async function resumePaused(claimed: [LedgerSlot, BackendSandbox][]): Promise<void> {
    const liveSandboxes = new Map(
      userSandboxes
        .liveSandboxes()
        .map((candidate): [string, LiveSandbox] => [candidate.sandbox.id, candidate]),
    )
    for (const [, { id, state }] of claimed) {
      const candidate = liveSandboxes.get(id)
      if (state !== 'paused' || !candidate || candidate.sandbox.paused) continue
      await one(candidate.userId, 'a paused sandbox that is in use could not be resumed', () =>
        backend.resume(id),
      )
    }
  }

  /** A failure is logged and does not stop the round. */
  async function one(userId: string, problem: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!closing.aborted) options.log(problem, { userId, error })
    }
  }

  async function stopUnconnected(claimed: [LedgerSlot, BackendSandbox][], seenAt: number): Promise<void> {
    const before = asleep
    asleep = new Map()
    const due: { userId: string }[] = []
    for (const [{ userId }, { id, state }] of claimed) {
      if (state !== 'paused' || userId === undefined || userSandboxes.isConnected(userId)) continue
      const since = before.get(id) ?? performance.now()
      asleep.set(id, since)
      if (stopAfterMs > 0 && performance.now() - since >= stopAfterMs) due.push({ userId })
    }
    // Their owners would have stopped them.
    for (const { userId } of await takeOver(due))
      await one(userId, 'a paused sandbox without a stream could not be stopped', () =>
        userSandboxes.stop(userId, seenAt),
      )
  }

  return {
    begin() {
      first ??= (async () => {
        await round()
        const shortest = Math.min(...[pauseAfterMs, stopAfterMs].filter((ms) => ms > 0))
        const sweepMs = Math.min(Math.max(shortest / 4, 100), 15_000)
        const sweep = (): Promise<void> =>
          sweepIdle({
            backend,
            pauseAfterMs,
            stopAfterMs,
            liveSandboxes: () => userSandboxes.liveSandboxes(),
            stop: (candidate) => userSandboxes.stopIdle(candidate),
            log: options.log,
          })
        loops = Promise.all([
          every(options.lookEveryMs, round),
          ...(Number.isFinite(shortest) ? [every(sweepMs, sweep)] : []),
        ])
      })()
      return first
    },
    async ended() {
      await first
      await loops
    },
  }
}
