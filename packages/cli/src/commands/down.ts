import { recordFile } from '../children.ts'
import type { Command } from '../context.ts'
import { readRecord, release } from '../pid-file.ts'
import { isRunning, signalProcess, waitForEnd } from '../processes.ts'
import { StepError } from '../steps.ts'
import { endOrphans, stopLeftSandboxes } from './up.ts'

/** As long as `up` may take to end its children, and a little. */
const PATIENCE_MS = 90_000

/** End a running `up` as Ctrl-C does: prompts are interrupted, sandboxes stopped, workspaces and the engine kept. */
export const down: Command = async (context) => {
  const { config, steps, print } = context
  const file = recordFile(config)
  const record = readRecord(file)
  if (record === undefined || !isRunning(record.up)) {
    if (record !== undefined) {
      await endOrphans(record, context)
      release(file, record)
    }
    await stopLeftSandboxes(context)
    print('Sandlot is not running.')
    return 0
  }
  await steps.run(`Stopping Sandlot (process ${record.up.pid})`, async () => {
    signalProcess(record.up, 'SIGINT')
    if (await waitForEnd(record.up, PATIENCE_MS)) return
    throw new StepError(
      `It did not end within ${PATIENCE_MS / 1000} seconds.`,
      `Look at the logs in ${config.data}/log. To end it without its goodbyes: kill -KILL ${record.up.pid}, then ./sandlot down again.`,
    )
  })
  return 0
}
