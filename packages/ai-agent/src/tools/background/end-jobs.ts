/** Ends background commands whose session is deleted. */
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { Sandboxes } from '@sandlot/sandbox/sandboxes'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import type { Job } from './jobs.ts'

/**
 * Ends those of these commands of a user that still run, with everything they have started, and
 * lets the sandbox forget them. Rejects with a `SandboxError`, or a `TimeoutError` when one has not
 * ended in time.
 */
export type EndJobs = (userId: string, jobs: readonly Job[]) => Promise<void>

/** From TERM to KILL. */
const GRACE_MS = 2000
/** A sandbox that does not answer must not keep a person from deleting. */
const PATIENCE_MS = 15_000

/** Never starts a stopped sandbox: what ran in it has ended with it. */
export function endJobs(sandboxes: Pick<Sandboxes, 'status' | 'acquire'>): EndJobs {
  return async (userId, jobs) => {
    const { state } = await sandboxes.status(userId)
    if (state !== 'running' && state !== 'paused') return
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const sandbox = await sandboxes.acquire(userId, signal)
    const ours = jobs.filter(({ boot }) => boot === sandbox.bootId)
    await orAborted(Promise.all(ours.map((job) => endJob(sandbox, job))), signal)
  }
}

async function endJob(sandbox: Sandbox, job: Job): Promise<void> {
  const command = await sandbox.attach(job.command)
  if (command === undefined) return
  // Awaited below; a sandbox that goes away while it is asked to end must not be an unhandled
  // rejection.
  void Promise.allSettled([command.exit])
  await command.cancel(GRACE_MS)
  const exit = await command.exit
  command.acknowledge({ stdout: exit.bytes.stdout })
}
