import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { childEnvironment } from '../processes/child-env.ts'
import { endOrphans } from '../processes/end-orphans.ts'
import { recordFile } from '../processes/children.ts'
import type { Command, Context } from '../context.ts'
import { readRecord, release } from '../processes/pid-file.ts'
import { isRunning, signalProcess, waitForEnd } from '../processes/process-mark.ts'
import { run } from '../programs/run.ts'
import { confirmed, engineEnvironment, sandboxAdmin } from '../programs/sandbox-admin.ts'
import { StepError } from '../steps.ts'
import { END_SIGNAL } from '../processes/stop-signals.ts'
import { stopLeftSandboxes } from '../deployment/left-sandboxes.ts'

/** As long as `up` may take to end its children, and a little. */
const PATIENCE_MS = 90_000

const purged = z.object({ containers: z.number(), volumes: z.number() })

/**
 * End a running `up` as Ctrl-C does: the next start goes on with prompts, commands run on as long
 * as a sandbox lives without Sandlot. `--end` ends prompts and stops sandboxes, also those that an
 * earlier `up` left; workspaces and the engine are kept. `--purge` then removes every container and
 * workspace of this deployment, after asking.
 */
export const down: Command = async (context) => {
  const purge = context.args.includes('--purge')
  const question = 'Remove every sandbox of this Sandlot, with all files of all users?'
  if (purge && !(await confirmed(question, context.args))) {
    context.print('Nothing was stopped or removed.')
    return 1
  }
  const code = await end(context, purge || context.args.includes('--end'))
  if (!purge) return code
  const { containers, volumes } = purged.parse(await sandboxAdmin(['purge'], context))
  context.print(`Removed ${containers} containers and ${volumes} workspaces.`)
  return code
}

async function end(context: Context, ends: boolean): Promise<number> {
  const { config, steps, print } = context
  const file = recordFile(config)
  const record = readRecord(file)
  if (record === undefined || !isRunning(record.up)) {
    if (record !== undefined) {
      await endOrphans(record, context)
      release(file, record)
    }
    if (ends) await endWhatWasLeft(context)
    print('Sandlot is not running.')
    return 0
  }
  await steps.run(`Stopping Sandlot (process ${record.up.pid})`, async () => {
    signalProcess(record.up, ends ? END_SIGNAL : 'SIGTERM')
    if (await waitForEnd(record.up, PATIENCE_MS)) return
    throw new StepError(
      `It did not end within ${PATIENCE_MS / 1000} seconds.`,
      `Look at the logs in ${config.data}/log. To end it without its goodbyes: kill -KILL ${record.up.pid}, then ./sandlot down again.`,
    )
  })
  // An `up` of a version that does not know the signal has ended without its processes.
  await endOrphans(record, context)
  if (ends) await stopLeftSandboxes(context)
  return 0
}

/**
 * Prompts that wait for the next start, and the sandboxes that run on meanwhile: those also where
 * the prompts cannot be ended, which rejects afterwards.
 */
async function endWhatWasLeft(context: Context): Promise<void> {
  try {
    await endWaitingPrompts(context)
  } finally {
    await stopLeftSandboxes(context)
  }
}

async function endWaitingPrompts({ config, steps }: Context): Promise<void> {
  const program = join(config.root, 'packages', 'ai-agent', 'dist', 'main.js')
  if (!existsSync(join(config.data, 'keys', 'deployment.json')) || !existsSync(program)) return
  const engine = { ...engineEnvironment(config.environment), SANDLOT_SANDBOX_POOL: '0' }
  await steps.run('Ending the prompts that wait for the next start', () =>
    run(process.execPath, [program, '--end'], {
      cwd: config.root,
      environment: { ...childEnvironment('ai-agent', config.environment), ...engine },
      log: join(config.data, 'log', 'down.log'),
      fix: 'What it said is above.',
    }),
  )
}
