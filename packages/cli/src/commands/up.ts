import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { systemPackages } from '../setup/apt.ts'
import { recordFile } from '../processes/children.ts'
import type { Command, Context } from '../context.ts'
import { endOrphans } from '../processes/end-orphans.ts'
import { claim, release, type UpRecord } from '../processes/pid-file.ts'
import { ownMark } from '../processes/process-mark.ts'
import { checkPortIsFree, openableUrl } from '../deployment/ready.ts'
import { readReplicas, replicaNumbers } from '../deployment/replicas.ts'
import { setUp } from '../setup/setup.ts'
import { StepError } from '../steps.ts'
import { listenForStop } from '../processes/stop-signals.ts'
import { interruptedUpgrade } from '../upgrade/journal.ts'
import { continueUpgrade } from '../upgrade/upgrade.ts'

/** Prepares the machine, then runs Sandlot in the foreground until Ctrl-C or `down`. */
export const up: Command = async (context) => {
  const { config, args, steps, print } = context
  const replicas = readReplicas(args, config)
  if (replicas === undefined) {
    print('Usage: ./sandlot up [--replicas N]')
    return 2
  }
  const left = interruptedUpgrade(config)
  if (left !== undefined) {
    const code = await continueUpgrade(context, left)
    if (code !== undefined) return code
  }
  const self = ownMark()
  const record: UpRecord = {
    up: self,
    url: openableUrl(config.host, config.port),
    children: {},
    ...(replicas > 1 && { replicas }),
  }
  const claimed = claim(recordFile(config), record)
  if (claimed.kind === 'running') {
    const state = Object.keys(claimed.record.children).length === 0 ? 'is starting' : 'is already running'
    print(
      `Sandlot ${state}: ${claimed.record.url} (process ${claimed.record.up.pid}; stop it with ./sandlot down)`,
    )
    return 0
  }
  using stop = listenForStop()
  try {
    if (claimed.previous !== undefined) await endOrphans(claimed.previous, context)
    for (const number of replicaNumbers(replicas))
      await checkPortIsFree(config.host, config.port + (number ?? 1) - 1).catch((error: unknown) =>
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

/** Partly restored data must not be started as if it were complete. @throws StepError. */
function refuseUnfinishedRestore(data: string): void {
  if (!existsSync(join(data, 'restoring'))) return
  throw new StepError(
    `A restore into ${data} was interrupted.`,
    'Run ./sandlot restore FILE again; it starts over.',
  )
}

/**
 * Replaces this process with the built supervisor, under the same process id and record. Modules
 * that only the preparation needs would otherwise stay in memory as long as Sandlot runs.
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
