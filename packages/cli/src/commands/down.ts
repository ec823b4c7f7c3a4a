import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { ConfigError } from '@sandlot/shared/config'
import { z } from 'zod'
import { engineOf } from '../config.ts'
import { askEngine } from '../setup/engine.ts'
import { childEnvironment } from '../processes/child-env.ts'
import { endOrphans } from '../processes/end-orphans.ts'
import { recordFile } from '../processes/children.ts'
import type { Command, Context } from '../context.ts'
import { type UpRecord, readRecord, release } from '../processes/pid-file.ts'
import { isRunning, signalProcess, waitForEnd } from '../processes/process-mark.ts'
import { run } from '../programs/run.ts'
import { confirmed, engineEnvironment, sandboxAdmin } from '../programs/sandbox-admin.ts'
import { StepError } from '../steps.ts'
import { END_SIGNAL } from '../processes/stop-signals.ts'
import { deploymentOf, needsGate } from '../deployment/gate.ts'
import { isOnPostgres, replicaId, replicaNumbers } from '../deployment/replicas.ts'

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
  if (purge) await refuseOthers(context, readRecord(recordFile(context.config)))
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
    if (ends) await endWhatWasLeft(context, record)
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
  if (ends && !(await isLeftToOthers(context, record))) await stopLeftSandboxes(context)
  return 0
}

/** Where they are is not known here: their people's sandboxes may be on the same engine. */
async function refuseOthers(context: Context, record: UpRecord | undefined): Promise<void> {
  const others = await agentsElsewhere(context, record)
  if (others.length > 0)
    throw new StepError(
      `Other agents run with the same database (${others.join(', ')}), and their people’s files would go too. Nothing was stopped or removed.`,
      'End them with ./sandlot down where they run, then run this again.',
    )
}

/** Whether other agents have the prompts and sandboxes of all people now; then it is said. */
async function isLeftToOthers(context: Context, record: UpRecord | undefined): Promise<boolean> {
  const others = await agentsElsewhere(context, record)
  if (others.length === 0) return false
  context.steps.note(
    `! Other agents run with the same database (${others.join(', ')}): their prompts go on, and all sandboxes are left to them.`,
  )
  return true
}

/** Names of those on the same PostgreSQL that the `up` of this record has not started here. */
async function agentsElsewhere(context: Context, record: UpRecord | undefined): Promise<string[]> {
  const { config } = context
  if (!isOnPostgres(config) || deploymentOf(config) === undefined) return []
  const own = new Set(replicaNumbers(record?.replicas ?? 1).map((number) => replicaId(config, number)))
  const living = z.array(z.string()).parse(await sandboxAdmin(['agents'], context))
  return living.filter((id) => !own.has(id))
}

/**
 * Prompts that wait for the next start, and the sandboxes that run on meanwhile: those also where
 * the prompts cannot be ended, which rejects afterwards.
 */
async function endWhatWasLeft(context: Context, record: UpRecord | undefined): Promise<void> {
  if (await isLeftToOthers(context, record)) return
  try {
    await endWaitingPrompts(context)
  } finally {
    await stopLeftSandboxes(context)
  }
}

async function endWaitingPrompts({ config, steps }: Context): Promise<void> {
  const program = join(config.root, 'packages', 'ai-agent', 'dist', 'main.js')
  if (!existsSync(join(config.keys, 'deployment.json')) || !existsSync(program)) return
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

/**
 * Stops containers that still run after their agent ended: it was killed, or had no engine.
 * Workspaces stay. Rejects with a `SandboxError`.
 */
async function stopLeftSandboxes({ config, steps }: Context): Promise<void> {
  if (!needsGate(config)) return
  try {
    // Without an engine nothing of ours runs on it either.
    if ((await askEngine(config)) instanceof Error) return
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    steps.note(
      `! The engine cannot be asked whether sandboxes are left running: ${error.problems.join('; ')}`,
    )
    return
  }
  const deployment = deploymentOf(config)
  if (deployment === undefined) return
  const backend = createDockerBackend({ deployment, ...engineOf(config) })
  try {
    const left = (await backend.list({})).filter(({ state }) => state === 'running' || state === 'paused')
    await Promise.all(left.map(({ id }) => backend.stop(id)))
    if (left.length > 0)
      steps.note(`Stopped ${left.length} sandboxes that an earlier run left; workspaces are kept.`)
  } finally {
    await backend.inventory.close()
  }
}
