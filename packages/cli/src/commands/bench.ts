import { join } from 'node:path'
import { systemPackages } from '../setup/apt.ts'
import type { Command } from '../context.ts'
import { ensureEngine } from '../setup/engine.ts'
import { ensureSandboxImage } from '../setup/images.ts'
import { runInteractive } from '../programs/run-interactive.ts'
import { nextToCluster } from '../testing/next-to-cluster.ts'
import { listenForStop } from '../processes/stop-signals.ts'

interface Bench {
  file: string
  /** It makes sandboxes. */
  needsEngine: boolean
  /** It runs next to a Kubernetes. */
  onCluster?: true
}

const BENCHES: Record<string, Bench> = {
  sandbox: { file: 'packages/sandbox/bench/sandbox.ts', needsEngine: true },
  'sandbox --backend kubernetes': {
    file: 'packages/sandbox/bench/kubernetes.ts',
    needsEngine: true,
    onCluster: true,
  },
  agent: { file: 'packages/ai-agent/bench/agent.ts', needsEngine: false },
  service: { file: 'packages/service/bench/service.ts', needsEngine: false },
  'service --postgres': { file: 'packages/service/bench/postgres.ts', needsEngine: false },
  web: { file: 'packages/web/bench/web.ts', needsEngine: false },
}

/**
 * Measures one part on this machine next to alternatives in the same run: sandboxes on Docker or on
 * Kubernetes, the agent, the service, PostgreSQL next to files, or the page. Returns 1 when a goal
 * is missed or cannot be measured.
 */
export const bench: Command = async ({ config, args, steps, print }) => {
  const [first = 'sandbox', ...others] = args
  const at = others.findIndex((arg) => arg === '--postgres' || arg === '--backend')
  const variant = at === -1 ? [] : others.splice(at, others[at] === '--backend' ? 2 : 1)
  const name = [first, ...variant].join(' ')
  const chosen = BENCHES[name]
  if (chosen === undefined) {
    print(`There is no benchmark "${name}". Known: ${Object.keys(BENCHES).join(', ')}`)
    return 2
  }
  if (chosen.needsEngine) {
    using stop = listenForStop()
    const packages = systemPackages(config, stop.signal)
    await steps.run('Docker engine', (step) => ensureEngine(config, packages, step, stop.signal))
    await steps.run('Sandbox image', (step) => ensureSandboxImage(config, packages, step, stop.signal))
  }
  const node = ['--conditions=sandlot-source', join(config.root, chosen.file)]
  const command = chosen.onCluster
    ? nextToCluster(others, (options) => [process.execPath, ...node, ...options])
    : [...node, ...others]
  return runInteractive(process.execPath, command, { cwd: config.root, environment: config.environment })
}
