import type { SystemPackages } from './apt.ts'
import { build } from './build.ts'
import type { CliConfig } from './config.ts'
import { ensureEngine } from './engine.ts'
import { ensureSandboxImage } from './images.ts'
import type { Steps } from './steps.ts'

/** What `up` and `test` both need: an engine, the image of the sandboxes, everything built. In this order, each said. */
export async function setUp(
  config: CliConfig,
  steps: Steps,
  packages: SystemPackages,
  signal: AbortSignal,
): Promise<void> {
  if (config.backend === 'docker') {
    await steps.run('Docker engine', (step) => ensureEngine(config, packages, step, signal))
    await steps.run('Sandbox image', (step) => ensureSandboxImage(config, packages, step, signal))
  } else {
    steps.note(
      '! SANDLOT_SANDBOX=local-process isolates nothing: every command of the agent runs as you, on this machine.',
    )
  }
  await steps.run('Build', (step) => build(config, step, signal))
}
