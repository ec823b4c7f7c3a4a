import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { systemPackages } from '../setup/apt.ts'
import { recordFile } from '../children.ts'
import type { Command, Context } from '../context.ts'
import { claim, release, type UpRecord } from '../pid-file.ts'
import { isRunning, ownMark, signalProcess, waitForEnd } from '../processes.ts'
import { checkPortIsFree, openableUrl } from '../ready.ts'
import { setUp } from '../setup/setup.ts'
import { StepError } from '../steps.ts'
import { listenForStop } from '../stop-signals.ts'

/** An earlier run's agent ends prompts and stops sandboxes in this time. */
const AGENT_GRACE_MS = 60_000

/** Everything needed to run, then run it, in the foreground, until Ctrl-C or `down`. */
export const up: Command = async (context) => {
  const { config, steps, print } = context
  const self = ownMark()
  const record: UpRecord = { up: self, url: openableUrl(config.host, config.port), children: {} }
  const claimed = claim(recordFile(config), record)
  if (claimed.kind === 'running') {
    const state =
      Object.keys(claimed.record.children).length === 0 ? 'is being started' : 'is already running'
    print(
      `Sandlot ${state}: ${claimed.record.url} (process ${claimed.record.up.pid}; ./sandlot down ends it)`,
    )
    return 0
  }
  using stop = listenForStop()
  try {
    if (claimed.previous !== undefined) await endOrphans(claimed.previous, context)
    await checkPortIsFree(config.host, config.port).catch((error: unknown) =>
      steps.run('Port', () => Promise.reject(error)),
    )
    refuseUnfinishedRestore(config.data)
    await setUp(config, steps, systemPackages(config, stop.signal), stop.signal)
    stop.signal.throwIfAborted()
    return becomeSupervisor(context, record)
  } finally {
    release(recordFile(config), record)
  }
}

/** Half of a Sandlot would be started as if it were all of it. @throws StepError. */
function refuseUnfinishedRestore(data: string): void {
  if (!existsSync(join(data, 'restoring'))) return
  throw new StepError(
    `A restore into ${data} has not ended.`,
    'Run ./sandlot restore FILE again: it begins anew.',
  )
}

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

/**
 * What was needed to prepare is not needed to watch, and would stay in memory as long as Sandlot
 * runs: this process goes on as the built program, under its own id, with the record that it has
 * written.
 */
function becomeSupervisor({ config }: Pick<Context, 'config'>, record: UpRecord): never {
  const { environment, ...rest } = config
  const program = join(config.root, 'packages', 'cli', 'dist', 'supervisor', 'main.js')
  if (process.execve === undefined) throw new Error('This version of Node cannot replace its program.')
  const args = [
    process.execPath,
    '--max-semi-space-size=1',
    program,
    JSON.stringify({ config: rest, record }),
  ]
  const defined = Object.entries(environment).filter(([, value]) => value !== undefined)
  return process.execve(process.execPath, args, Object.fromEntries(defined) as Record<string, string>)
}
