import { setTimeout as sleep } from 'node:timers/promises'

import type { SandboxBackend } from '../backend.ts'
import type { ConnectedSandbox } from '../sbxd/client.ts'
import { SandboxError } from '../errors.ts'
import { createGate } from '#shared/async/keyed-lock'

/** Milliseconds before each try to resume a used sandbox. */
const WAKE_AFTER = [0, 100, 1_000, 4_000]

/**
 * Pauses this sandbox if no command of any controller runs in it. The next frame, which waits in
 * the stream, wakes it. True when it is paused now. A sandbox that cannot be resumed is closed with
 * the engine's reason. Rejects only with the sandbox's own answer.
 */
export async function pause(sandbox: ConnectedSandbox, backend: SandboxBackend): Promise<boolean> {
  // A wake during the engine's pause must wait for it, or the pause would win.
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

/** Fills in the defaults. */
export function idleTimes({
  pauseAfterMs = 60_000,
  stopAfterMs = 1_800_000,
}: IdleOptions = {}): Required<IdleOptions> {
  return { pauseAfterMs, stopAfterMs }
}

/** A sandbox with a stream. */
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
   * Stops this one if it was not used since; resolves with false when it was, or when a command
   * runs in it.
   */
  stop: (candidate: LiveSandbox) => Promise<boolean>
  log: (message: string, details: { userId: string; error?: unknown }) => void
}

/**
 * Sandboxes paused or stopped at once: after a common break all are due together, and the engine
 * has other work.
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
    // Measured here, since it may have been used while it was queued.
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

/** A silent engine is asked again at the next sweep. */
async function mayPause(backend: SandboxBackend): Promise<boolean> {
  try {
    return (await backend.inventory.capabilities()).pause
  } catch (error) {
    if (error instanceof SandboxError) return false
    throw error
  }
}
