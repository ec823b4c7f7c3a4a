import type { Context } from '../context.ts'
import type { UpRecord } from './pid-file.ts'
import { isRunning, signalProcess, waitForEnd } from './process-mark.ts'

/** An earlier run's agent ends prompts and stops sandboxes in this time. */
const AGENT_GRACE_MS = 60_000

/**
 * What an `up` that was killed left running holds the port and the agent's lock: end it as a
 * restart does.
 */
export async function endOrphans(previous: UpRecord, { steps }: Pick<Context, 'steps'>): Promise<void> {
  const orphans = Object.entries(previous.children).filter(([, mark]) => isRunning(mark))
  if (orphans.length === 0) return
  await steps.run(
    `Ending what an earlier run left: ${orphans.map(([name]) => name).join(', ')}`,
    async () => {
      for (const [, mark] of orphans) signalProcess(mark, 'SIGTERM')
      for (const [, mark] of orphans) {
        if (await waitForEnd(mark, AGENT_GRACE_MS)) continue
        signalProcess(mark, 'SIGKILL', true)
        await waitForEnd(mark, 5_000)
      }
    },
  )
}
