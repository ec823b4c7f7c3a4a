import { setTimeout as sleep } from 'node:timers/promises'

import type { BackendSandbox, SandboxBackend } from '../backend.ts'
import { type LiveSandbox, sweepIdle } from './idle.ts'
import { createGate } from '#shared/async/keyed-lock'
import type { LedgerSlot, SandboxLedger } from '../ledger.ts'
import type { Pool } from './pool.ts'
import { claimedContainers, type Seen } from './reconciler.ts'
import type { SharedEngine } from './shared-engine.ts'
import type { UserSandboxes } from './user-sandboxes.ts'

/** Streams opened at once after a start. */
const REATTACH_AT_ONCE = 32

interface HousekeepingOptions {
  deploymentId: string
  backend: SandboxBackend
  ledger: Pick<SandboxLedger, 'nextEpoch'>
  pool: Pick<Pool, 'settle' | 'refill'>
  userSandboxes: Pick<
    UserSandboxes,
    'liveSandboxes' | 'isConnected' | 'proveBusy' | 'reattach' | 'stop' | 'stopIdle'
  >
  /** One pass of the reconciler. */
  reconcile: () => Promise<Seen>
  reconcileEveryMs: number
  /** Milliseconds; 0 = never. */
  idle: { pauseAfterMs: number; stopAfterMs: number }
  closing: AbortSignal
  share: SharedEngine
  log: (message: string, details: { userId?: string; error?: unknown }) => void
}

interface Housekeeping {
  /** Starts the loops, once. Resolves after the first round; never rejects. */
  begin(): Promise<void>
  /** Resolves after `closing`, when no work is in progress any more. */
  ended(): Promise<void>
}

type Claimed = readonly [LedgerSlot, BackendSandbox]

/** The controller's periodic work. A failed round is logged, and the next one runs as usual. */
export function createHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { closing } = options
  let first: Promise<void> | undefined
  let loops: Promise<unknown> = Promise.resolve()
  /** Paused containers of an earlier controller, without a stream, with their first sighting. */
  let asleep = new Map<string, number>()

  async function round(): Promise<void> {
    try {
      const seen = await options.reconcile()
      const claimed = claimedContainers(seen, options.deploymentId)
      await reattachAll(claimed, seen.at, options)
      await resumePaused(claimed, options)
      await options.userSandboxes.proveBusy()
      const paused = pausedWithoutStream(claimed, asleep, options)
      asleep = paused.asleep
      await stopDue(paused.due, seen.at, options)
      await options.pool.settle(seen.rows, seen.containers)
      options.pool.refill()
    } catch (error) {
      if (!closing.aborted) options.log('a maintenance round failed; the next one tries again', { error })
    }
  }

  return {
    begin() {
      first ??= (async () => {
        await round()
        loops = Promise.all([every(options.reconcileEveryMs, closing, round), sweepRegularly(options)])
      })()
      return first
    },
    async ended() {
      await first
      await loops
    },
  }
}

async function every(ms: number, closing: AbortSignal, work: () => Promise<void>): Promise<void> {
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

async function sweepRegularly({
  backend,
  userSandboxes,
  idle,
  closing,
  log,
}: HousekeepingOptions): Promise<void> {
  const shortest = Math.min(...[idle.pauseAfterMs, idle.stopAfterMs].filter((ms) => ms > 0))
  if (!Number.isFinite(shortest)) return
  await every(Math.min(Math.max(shortest / 4, 100), 15_000), closing, () =>
    sweepIdle({
      backend,
      ...idle,
      liveSandboxes: () => userSandboxes.liveSandboxes(),
      stop: (candidate) => userSandboxes.stopIdle(candidate),
      log,
    }),
  )
}

/**
 * One list, one epoch, and then only streams: two hundred are open within a second or two. Also for
 * users whose controller has ended: their commands must keep running.
 */
async function reattachAll(
  claimed: readonly Claimed[],
  seenAt: number,
  options: HousekeepingOptions,
): Promise<void> {
  const { userSandboxes } = options
  const wanted = claimed.flatMap(([slot, container]) =>
    container.state === 'running' && slot.userId !== undefined && !userSandboxes.isConnected(slot.userId)
      ? [{ userId: slot.userId, slot, container }]
      : [],
  )
  const ours = await takeOver(wanted, options)
  if (ours.length === 0) return
  const epoch = await options.ledger.nextEpoch()
  const gate = createGate(REATTACH_AT_ONCE)
  await Promise.all(
    ours.map(({ userId, slot, container }) =>
      gate(() =>
        logged(userId, 'the stream to a running sandbox could not be opened', options, () =>
          userSandboxes.reattach(slot, container, epoch, seenAt),
        ),
      ),
    ),
  )
}

async function takeOver<T extends { userId: string }>(
  wanted: readonly T[],
  { share }: HousekeepingOptions,
): Promise<T[]> {
  if (wanted.length === 0) return []
  const ours = await share.takeOver(wanted.map(({ userId }) => userId))
  return wanted.filter(({ userId }) => ours.has(userId))
}

/**
 * Containers paused from outside while in use: by an operator, or an engine that crashed half-way.
 */
async function resumePaused(claimed: readonly Claimed[], options: HousekeepingOptions): Promise<void> {
  const live = new Map(
    options.userSandboxes
      .liveSandboxes()
      .map((candidate): [string, LiveSandbox] => [candidate.sandbox.id, candidate]),
  )
  for (const [, { id, state }] of claimed) {
    const candidate = live.get(id)
    if (state !== 'paused' || !candidate || candidate.sandbox.paused) continue
    await logged(candidate.userId, 'a paused sandbox that is in use could not be resumed', options, () =>
      options.backend.resume(id),
    )
  }
}

/** `due`: users whose container has been paused without a stream for `stopAfterMs`. */
function pausedWithoutStream(
  claimed: readonly Claimed[],
  before: ReadonlyMap<string, number>,
  { userSandboxes, idle: { stopAfterMs } }: HousekeepingOptions,
): { asleep: Map<string, number>; due: { userId: string }[] } {
  const asleep = new Map<string, number>()
  const due: { userId: string }[] = []
  for (const [{ userId }, { id, state }] of claimed) {
    if (state !== 'paused' || userId === undefined || userSandboxes.isConnected(userId)) continue
    const since = before.get(id) ?? performance.now()
    asleep.set(id, since)
    if (stopAfterMs > 0 && performance.now() - since >= stopAfterMs) due.push({ userId })
  }
  return { asleep, due }
}

/** Only those without another controller, which would have stopped its own. */
async function stopDue(
  due: readonly { userId: string }[],
  seenAt: number,
  options: HousekeepingOptions,
): Promise<void> {
  for (const { userId } of await takeOver(due, options))
    await logged(userId, 'a paused sandbox without a stream could not be stopped', options, () =>
      options.userSandboxes.stop(userId, seenAt),
    )
}

/** A failure is logged and does not end the round. */
async function logged(
  userId: string,
  problem: string,
  { closing, log }: HousekeepingOptions,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!closing.aborted) log(problem, { userId, error })
  }
}
