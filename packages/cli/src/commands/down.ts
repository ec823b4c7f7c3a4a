import { join } from 'node:path'
import { ConfigError } from '@sandlot/shared/config'
import { SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import { z } from 'zod'
import { askEngine } from '../setup/engine.ts'
import { childEnvironment } from '../processes/child-env.ts'
import { endOrphans } from '../processes/end-orphans.ts'
import { recordFile } from '../processes/children.ts'
import type { Command, Context } from '../context.ts'
import { type UpRecord, readRecord, release } from '../processes/pid-file.ts'
import { isRunning, signalProcess, waitForEnd } from '../processes/process-mark.ts'
import { programArguments } from '../programs/find-program.ts'
import { run } from '../programs/run.ts'
import { confirmed, engineEnvironment, sandboxAdmin } from '../programs/sandbox-admin.ts'
import { StepError } from '../steps.ts'
import { END_SIGNAL } from '../processes/stop-signals.ts'
import { deploymentOf } from '../deployment/gate.ts'
import { isOnPostgres, replicaId, replicaNumbers } from '../deployment/replicas.ts'

/** The time `up` may take to stop its children, and some more. */
const PATIENCE_MS = 90_000

const purged = z.object({ containers: z.number(), volumes: z.number() })

/**
 * Stops a running `up` as Ctrl-C does: prompts resume at the next start, commands run as long as a
 * sandbox lives without Sandlot. `--end` ends prompts and stops sandboxes, those of an earlier `up`
 * included. `--purge` then removes every container and workspace of this deployment.
 */
export const down: Command = async (context) => {
  const purge = context.args.includes('--purge')
  const question = 'Delete every sandbox of this Sandlot, with all files of all users?'
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
    if (ends) await endRemaining(context, record)
    print('Sandlot is not running.')
    return 0
  }
  await steps.run(`Stopping Sandlot (process ${record.up.pid})`, async () => {
    signalProcess(record.up, ends ? END_SIGNAL : 'SIGTERM')
    if (await waitForEnd(record.up, PATIENCE_MS)) return
    throw new StepError(
      `Sandlot did not stop within ${PATIENCE_MS / 1000} seconds.`,
      `See the logs in ${config.data}/log. To force it: kill -KILL ${record.up.pid}, then run ./sandlot down again.`,
    )
  })
  // An `up` of an earlier version does not handle the signal, and exits without its children.
  await endOrphans(record, context)
  if (ends && !(await isLeftToOthers(context, record))) await stopLeftSandboxes(context)
  return 0
}

/** Agents on other machines may have sandboxes on the same engine. @throws StepError. */
async function refuseOthers(context: Context, record: UpRecord | undefined): Promise<void> {
  const others = await agentsElsewhere(context, record)
  if (others.length > 0)
    throw new StepError(
      `Other agents use the same database (${others.join(', ')}), and the files of their users would be deleted too. Nothing was changed.`,
      'Stop them with ./sandlot down on their machines, then run this again.',
    )
}

/** True, with a note, if other agents have taken over all prompts and sandboxes. */
async function isLeftToOthers(context: Context, record: UpRecord | undefined): Promise<boolean> {
  const others = await agentsElsewhere(context, record)
  if (others.length === 0) return false
  context.steps.note(
    `! Other agents use the same database (${others.join(', ')}): their prompts continue, and all sandboxes keep running.`,
  )
  return true
}

/** Live agents on the same PostgreSQL that the `up` of this record has not started. */
async function agentsElsewhere(context: Context, record: UpRecord | undefined): Promise<string[]> {
  const { config } = context
  if (!isOnPostgres(config) || deploymentOf(config) === undefined) return []
  const own = new Set(replicaNumbers(record?.replicas ?? 1).map((number) => replicaId(config, number)))
  const living = z.array(z.string()).parse(await sandboxAdmin(['agents'], context))
  return living.filter((id) => !own.has(id))
}

/**
 * Ends prompts that are pending for the next start, and stops the sandboxes that still run. A
 * failure of the first rejects after the second.
 */
async function endRemaining(context: Context, record: UpRecord | undefined): Promise<void> {
  if (await isLeftToOthers(context, record)) return
  try {
    await endWaitingPrompts(context)
  } finally {
    await stopLeftSandboxes(context)
  }
}

async function endWaitingPrompts({ config, steps }: Context): Promise<void> {
  if (deploymentOf(config) === undefined) return
  const engine = { ...engineEnvironment(config.environment), SANDLOT_SANDBOX_POOL: '0' }
  await steps.run('Ending prompts that would resume at the next start', () =>
    run(process.execPath, [...programArguments(config, 'ai-agent', 'main'), '--end'], {
      cwd: config.root,
      environment: { ...childEnvironment('ai-agent', config.environment), ...engine },
      log: join(config.data, 'log', 'down.log'),
      fix: 'Its output is above.',
    }),
  )
}

/**
 * Stops sandboxes that outlive their agent, which was killed or had no engine. Workspaces are kept.
 */
async function stopLeftSandboxes(context: Pick<Context, 'config' | 'steps'>): Promise<void> {
  const { config, steps } = context
  const { isolates, needsEngine } = SANDBOX_BACKENDS[config.backend]
  if (!isolates || (needsEngine && !(await engineAnswers(context)))) return
  if (deploymentOf(config) === undefined) return
  const left = z.array(z.string()).parse(await sandboxAdmin(['stop'], context))
  if (left.length > 0) steps.note(`Stopped ${left.length} sandboxes of an earlier run; workspaces are kept.`)
}

async function engineAnswers({ config, steps }: Pick<Context, 'config' | 'steps'>): Promise<boolean> {
  try {
    return !((await askEngine(config)) instanceof Error)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    steps.note(`! Couldn’t check the engine for running sandboxes: ${error.problems.join('; ')}`)
    return false
  }
}
