import { join } from 'node:path'
import { systemPackages } from '../apt.ts'
import type { Command } from '../context.ts'
import { ensureEngine } from '../engine.ts'
import { ensureSandboxImage } from '../images.ts'
import { runInteractive } from '../run-interactive.ts'
import { listenForStop } from '../stop-signals.ts'

const BENCHES: Record<string, { file: string }> = {
  sandbox: { file: 'packages/sandbox/bench/sandbox.ts' },
}

/** Measure something on this machine: `bench sandbox` is the sandbox beside what others do with the same engine. */
export const bench: Command = async ({ config, args, steps, print }) => {
  const [name = 'sandbox', ...rest] = args
  const chosen = BENCHES[name]
  if (chosen === undefined) {
    print(`There is no benchmark "${name}". Known: ${Object.keys(BENCHES).join(', ')}`)
    return 2
  }
  {
    using stop = listenForStop()
    const packages = systemPackages(config, stop.signal)
    await steps.run('Docker engine', (step) => ensureEngine(config, packages, step, stop.signal))
    await steps.run('Sandbox image', (step) => ensureSandboxImage(config, packages, step, stop.signal))
  }
  // Without our own export condition, `source`: some of the libraries that are measured beside use it for files that
  // only their authors can run.
  return runInteractive(process.execPath, [join(config.root, chosen.file), ...rest], {
    cwd: config.root,
    environment: config.environment,
  })
}
