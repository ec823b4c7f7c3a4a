import { z } from 'zod'
import { recordFile } from '../children.ts'
import type { Command, Context } from '../context.ts'
import { readRecord, release } from '../pid-file.ts'
import { isRunning, signalProcess, waitForEnd } from '../processes.ts'
import { confirmed, sandboxAdmin } from '../sandbox-admin.ts'
import { StepError } from '../steps.ts'
import { endOrphans, stopLeftSandboxes } from './up.ts'

/** As long as `up` may take to end its children, and a little. */
const PATIENCE_MS = 90_000

const purged = z.object({ containers: z.number(), volumes: z.number() })

/**
 * End a running `up` as Ctrl-C does: prompts are interrupted, sandboxes stopped, workspaces and the engine kept.
 * `--purge` then removes every container and workspace of this deployment, after asking.
 */
export const down: Command = async (context) => {
  const purge = context.args.includes('--purge')
  const question = 'Remove every sandbox of this Sandlot, with all files of all users?'
  if (purge && !(await confirmed(question, context.args))) {
    context.print('Nothing was stopped or removed.')
    return 1
  }
  const code = await end(context)
  if (!purge) return code
  const { containers, volumes } = purged.parse(await sandboxAdmin(['purge'], context))
  context.print(`Removed ${containers} containers and ${volumes} workspaces.`)
  return code
}

async function end(context: Context): Promise<number> {
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
