import { join } from 'node:path'
import { systemPackages } from '../setup/apt.ts'
import { childEnvironment, type ChildName } from '../processes/child-env.ts'
import { environmentFor, recordFile } from '../processes/children.ts'
import type { CliConfig } from '../config.ts'
import type { Command } from '../context.ts'
import { needsGate, waitForGate } from '../deployment/gate.ts'
import { claim, recordWriter, release, type UpRecord } from '../processes/pid-file.ts'
import { ownMark } from '../processes/process-mark.ts'
import { checkPortIsFree, openableUrl } from '../deployment/ready.ts'
import { setUp } from '../setup/setup.ts'
import { agentSignal, listenForStop } from '../processes/stop-signals.ts'
import { type ChildSpec, supervise, type Supervised } from '../processes/supervise.ts'
import { endOrphans } from '../processes/end-orphans.ts'

const VITE_PORT = 5173

/** `up` from the sources: Node's watch mode restarts the processes, vite reloads the page. */
export const dev: Command = async (context) => {
  const { config, steps, print } = context
  const self = ownMark()
  const record: UpRecord = { up: self, url: openableUrl(config.host, config.port), children: {} }
  const claimed = claim(recordFile(config), record)
  if (claimed.kind === 'running') {
    print(
      `Sandlot already runs with this data folder (process ${claimed.record.up.pid}). Stop it with ./sandlot down.`,
    )
    return 1
  }
  using stop = listenForStop()
  try {
    if (claimed.previous !== undefined) await endOrphans(claimed.previous, context)
    await checkPortIsFree(config.host, config.port)
    await setUp(config, steps, systemPackages(config, stop.signal), stop.signal)
    const records = recordWriter(recordFile(config), (text) => steps.note(`! ${text}`))
    const supervised = (spec: ChildSpec): Supervised =>
      supervise(spec, {
        started(mark) {
          record.children[spec.name] = mark
          records.write(record)
        },
        printed: (line) => steps.note(`${spec.name}: ${line}`),
        problem: (text) => steps.note(`! ${spec.name}: ${text}`),
        died: (end, delayMs) =>
          steps.note(`! ${spec.name} exited (${end}); restarting in ${delayMs / 1000} s`),
      })
    const gate = needsGate(config) ? supervised(watched('engine-gate', config)) : undefined
    if (gate !== undefined) await waitForGate(config, stop.signal)
    const children = [watched('ai-agent', config), watched('service', config), vite(config)].map(supervised)
    print(`Open http://127.0.0.1:${VITE_PORT} (reloads on changes) or ${record.url} (the last build)`)
    const signal = await stop.requested
    for (const child of children) await child.stop(agentSignal(signal), 30_000)
    await gate?.stop('SIGTERM', 10_000)
    return 0
  } finally {
    release(recordFile(config), record)
  }
}

function watched(name: ChildName, config: CliConfig): ChildSpec {
  const folder = join(config.root, 'packages', name)
  const origins = [config.environment['SANDLOT_ALLOWED_ORIGINS'], `http://127.0.0.1:${VITE_PORT}`].filter(
    (origin) => origin !== undefined,
  )
  const environment = childEnvironment(name, {
    ...environmentFor(name, config),
    SANDLOT_WEB_DIST: join(config.root, 'packages', 'web', 'dist'),
    SANDLOT_ALLOWED_ORIGINS: origins.join(','),
  })
  return {
    name,
    command: process.execPath,
    args: [
      '--watch',
      '--watch-preserve-output',
      '--conditions=sandlot-source',
      join(folder, 'src', 'main.ts'),
    ],
    cwd: config.root,
    environment: { ...environment, NODE_ENV: 'development' },
    log: join(config.data, 'log', `${name}.log`),
  }
}

function vite(config: CliConfig): ChildSpec {
  const folder = join(config.root, 'packages', 'web')
  return {
    name: 'vite',
    command: join(folder, 'node_modules', '.bin', 'vite'),
    args: ['--port', String(VITE_PORT), '--strictPort'],
    cwd: folder,
    environment: { PATH: config.environment['PATH'] ?? '', HOME: config.environment['HOME'] ?? '/' },
    log: join(config.data, 'log', 'vite.log'),
  }
}
