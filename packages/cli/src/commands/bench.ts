import { join } from 'node:path'
import { systemPackages } from '../setup/apt.ts'
import type { Command } from '../context.ts'
import { ensureEngine } from '../setup/engine.ts'
import { ensureSandboxImage } from '../setup/images.ts'
import { runInteractive } from '../programs/run-interactive.ts'
import { listenForStop } from '../processes/stop-signals.ts'

interface Bench {
  file: string
  /** It makes sandboxes. */
  needsEngine: boolean
}

const BENCHES: Record<string, Bench> = {
  sandbox: { file: 'packages/sandbox/bench/sandbox.ts', needsEngine: true },
  agent: { file: 'packages/ai-agent/bench/agent.ts', needsEngine: false },
  service: { file: 'packages/service/bench/service.ts', needsEngine: false },
  'service --postgres': { file: 'packages/service/bench/postgres.ts', needsEngine: false },
  web: { file: 'packages/web/bench/web.ts', needsEngine: false },
}

/**
 * Measures one part on this machine next to alternatives in the same run: sandboxes, the agent, the
 * service, PostgreSQL next to files, or the page. Returns 1 when a goal is missed or cannot be
 * measured.
 */
export const bench: Command = async ({ config, args, steps, print }) => {
  const [first = 'sandbox', ...others] = args
  const name = others.includes('--postgres') ? `${first} --postgres` : first
  const rest = others.filter((arg) => arg !== '--postgres')
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
  return runInteractive(
    process.execPath,
    ['--conditions=sandlot-source', join(config.root, chosen.file), ...rest],
    {
      cwd: config.root,
      environment: config.environment,
    },
  )
}
