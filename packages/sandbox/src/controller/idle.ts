import { setTimeout as sleep } from 'node:timers/promises'

import type { SandboxBackend } from '../backend.ts'
import type { ConnectedSandbox } from '../sbxd/client.ts'
import { SandboxError } from '../errors.ts'
import { createGate } from '#shared/async/keyed-lock'

/** Milliseconds before each try to wake a sandbox that somebody wants to use. */
const WAKE_AFTER = [0, 100, 1_000, 4_000]

/**
 * Pause this sandbox if nothing runs in it, no matter who started that; it wakes as soon as something is sent to it,
 * which waits in the stream meanwhile. True when it sleeps now. A sandbox that cannot be woken again is closed with
 * the engine's reason. Rejects only with what the sandbox answered.
 */
export async function nap(sandbox: ConnectedSandbox, backend: SandboxBackend): Promise<boolean> {
  // A wake that comes while the engine still pauses has to wait for that, or the pause would win.
  const paused = Promise.withResolvers<void>()
  const granted = await sandbox.rest(() => void paused.promise.then(() => wake(sandbox, backend)))
  if (!granted) return false
  try {
    if (sandbox.resting) await backend.pause(sandbox.id)
  } catch (error) {
    paused.resolve()
    // Nobody knows whether it sleeps. Something sent wakes it in any case, and signs of life are asked for again.
    await sandbox.commands()
    throw error
  }
  paused.resolve()
  return sandbox.resting
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

export const IDLE_DEFAULTS = { pauseAfterMs: 60_000, stopAfterMs: 1_800_000 } as const

/** A sandbox with a stream, as the sweep sees it. */
export interface Idler {
  userId: string
  sandbox: ConnectedSandbox
  /** On the clock of `performance.now()`. */
  usedAt: number
}

export interface IdleSweepOptions {
  backend: SandboxBackend
  pauseAfterMs: number
  stopAfterMs: number
  idlers: () => Idler[]
  /** Stop this one if it was not used since; resolves false when it was, or when something runs in it. */
  stop: (idler: Idler) => Promise<boolean>
  log: (message: string, details: { userId: string; error?: unknown }) => void
}

/** Sandboxes that are put to rest at once: after a common pause all are due together, and the engine has others to serve. */
const RESTS_AT_ONCE = 8

/** One look at everybody: pause who was idle for long enough, stop who was for much longer. Never rejects. */
export async function sweepIdle(options: IdleSweepOptions): Promise<void> {
  const { backend, pauseAfterMs, stopAfterMs } = options
  const canPause = pauseAfterMs > 0 && (await mayPause(backend))
  const gate = createGate(RESTS_AT_ONCE)
  const rest = async (idler: Idler): Promise<void> => {
    // When its turn comes: it may have been used meanwhile.
    const idleMs = performance.now() - Math.max(idler.usedAt, idler.sandbox.usedAt)
    try {
      if (stopAfterMs > 0 && idleMs >= stopAfterMs) await options.stop(idler)
      else if (canPause && !idler.sandbox.resting && idleMs >= pauseAfterMs) await nap(idler.sandbox, backend)
    } catch (error) {
      options.log('an idle sandbox could not be put to rest', { userId: idler.userId, error })
    }
  }
  await Promise.all(options.idlers().map((idler) => gate(() => rest(idler))))
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
