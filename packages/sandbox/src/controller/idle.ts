import { setTimeout as sleep } from 'node:timers/promises'

import type { SandboxBackend } from '../backend.ts'
import type { ConnectedSandbox } from '../sbxd/client.ts'
import { SandboxError } from '../errors.ts'
import { createGate } from '#shared/async/keyed-lock'

/** Milliseconds before each try to resume a sandbox that is used again. */
const WAKE_AFTER = [0, 100, 1_000, 4_000]

/**
 * Pause this sandbox if nothing runs in it, no matter who started that; it wakes as soon as
 * something is sent to it, which waits in the stream meanwhile. True when it sleeps now. A sandbox
 * that cannot be woken again is closed with the engine's reason. Rejects only with what the sandbox
 * answered.
 */
export async function pause(sandbox: ConnectedSandbox, backend: SandboxBackend): Promise<boolean> {
  // A wake that comes while the engine still pauses has to wait for that, or the pause would win.
  const paused = Promise.withResolvers<void>()
  const granted = await sandbox.preparePause(() => void paused.promise.then(() => wake(sandbox, backend)))
  if (!granted) return false
  try {
    if (sandbox.paused) await backend.pause(sandbox.id)
  } catch (error) {
    paused.resolve()
    // It may be paused or not. A request resumes it in any case and restarts the heartbeat.
    await sandbox.commands()
    throw error
  }
  paused.resolve()
  return sandbox.paused
}

async function wake(sandbox: ConnectedSandbox, backend: SandboxBackend): Promise<void> {
  let failure: unknown
  for (const ms of WAKE_AFTER) {
    await sleep(ms, undefined, { ref: false })
    try {
      await backend.resume(sandbox.id)
      return
    } catch (error) {
      failure = error
      if (error instanceof SandboxError && error.code === 'sandbox_lost') break
    }
  }
  const why =
    failure instanceof SandboxError
      ? failure
      : new SandboxError('sandbox_lost', 'The sandbox could not be woken.', { cause: failure })
  await sandbox.close(why)
}

export interface IdleOptions {
  /** Milliseconds without use after which a sandbox is paused; 0 = never. Default 60,000. */
  pauseAfterMs?: number
  /** Milliseconds without use after which a sandbox is stopped; 0 = never. Default 1,800,000. */
  stopAfterMs?: number
}

/** What `options` say, with the defaults. */
export function idleTimes({
  pauseAfterMs = 60_000,
  stopAfterMs = 1_800_000,
}: IdleOptions = {}): Required<IdleOptions> {
  return { pauseAfterMs, stopAfterMs }
}

/** A sandbox with a stream, as the sweep sees it. */
export interface LiveSandbox {
  userId: string
  sandbox: ConnectedSandbox
  /** On the clock of `performance.now()`. */
  usedAt: number
}

interface IdleSweepOptions {
  backend: SandboxBackend
  pauseAfterMs: number
  stopAfterMs: number
  liveSandboxes: () => LiveSandbox[]
  /**
   * Stop this one if it was not used since; resolves false when it was, or when something runs in
   * it.
   */
  stop: (candidate: LiveSandbox) => Promise<boolean>
  log: (message: string, details: { userId: string; error?: unknown }) => void
}

/**
 * Sandboxes that are put to rest at once: after a common pause all are due together, and the engine
 * has others to serve.
 */
const PAUSES_AT_ONCE = 8

/**
 * Checks every live sandbox: pauses one that was idle for `pauseAfterMs`, stops one that was for
 * `stopAfterMs`. Never rejects.
 */
export async function sweepIdle(options: IdleSweepOptions): Promise<void> {
  const { backend, pauseAfterMs, stopAfterMs } = options
  const canPause = pauseAfterMs > 0 && (await mayPause(backend))
  const gate = createGate(PAUSES_AT_ONCE)
  const rest = async (candidate: LiveSandbox): Promise<void> => {
    // When its turn comes: it may have been used meanwhile.
    const idleMs = performance.now() - Math.max(candidate.usedAt, candidate.sandbox.usedAt)
    try {
      if (stopAfterMs > 0 && idleMs >= stopAfterMs) await options.stop(candidate)
      else if (canPause && !candidate.sandbox.paused && idleMs >= pauseAfterMs)
        await pause(candidate.sandbox, backend)
    } catch (error) {
      options.log('an idle sandbox could not be paused or stopped', { userId: candidate.userId, error })
    }
  }
  await Promise.all(options.liveSandboxes().map((candidate) => gate(() => rest(candidate))))
}

/** An engine that does not answer is asked again at the next sweep. */
async function mayPause(backend: SandboxBackend): Promise<boolean> {
  try {
    return (await backend.inventory.capabilities()).pause
  } catch (error) {
    if (error instanceof SandboxError) return false
    throw error
  }
}
