import type { Context } from '../context.ts'
import type { UpRecord } from './pid-file.ts'
import { isRunning, signalProcess, waitForEnd } from './process-mark.ts'

/** Time for an agent to end prompts and stop sandboxes. */
const AGENT_GRACE_MS = 60_000

/** Stops the children of an `up` that was killed: they hold the port and the agent's lock. */
export async function endOrphans(previous: UpRecord, { steps }: Pick<Context, 'steps'>): Promise<void> {
  const orphans = Object.entries(previous.children).filter(([, mark]) => isRunning(mark))
  if (orphans.length === 0) return
  await steps.run(
    `Stopping processes of an earlier run: ${orphans.map(([name]) => name).join(', ')}`,
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
