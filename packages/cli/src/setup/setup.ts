import { SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import type { SystemPackages } from './apt.ts'
import type { CliConfig } from '../config.ts'
import { ensureEngine } from './engine.ts'
import { ensureSandboxImage } from './images.ts'
import type { Step, Steps } from '../steps.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../programs/run.ts'

/** Prepares an engine, the sandbox image and the build, each as a step. */
export async function setUp(
  config: CliConfig,
  steps: Steps,
  packages: SystemPackages,
  signal: AbortSignal,
): Promise<void> {
  if (SANDBOX_BACKENDS[config.backend].needsEngine) {
    await steps.run('Docker engine', (step) => ensureEngine(config, packages, step, signal))
    await steps.run('Sandbox image', (step) => ensureSandboxImage(config, packages, step, signal))
  }
  if (!SANDBOX_BACKENDS[config.backend].isolates) {
    steps.note(
      `! SANDLOT_SANDBOX=${config.backend} has no isolation: the agent’s commands run as you, on this machine.`,
    )
  }
  await steps.run('Build', (step) => build(config, step, signal))
}

/** `pnpm@<version>` of the root manifest: the one version that every command uses. */
function pnpmVersion(manifest: string): string {
  const parsed: unknown = JSON.parse(manifest)
  if (
    typeof parsed === 'object' &&
    parsed !== null &&
    'packageManager' in parsed &&
    typeof parsed.packageManager === 'string'
  ) {
    return parsed.packageManager
  }
  throw new Error('package.json has no packageManager')
}

/** Builds changed packages, and reports their number. An unchanged checkout takes a second. */
async function build(config: CliConfig, step: Step, signal: AbortSignal): Promise<void> {
  const pnpm = pnpmVersion(readFileSync(join(config.root, 'package.json'), 'utf8'))
  // With npx, because turbo runs pnpm, which may not be installed.
  const args = ['-y', pnpm, 'exec', 'turbo', 'run', 'build', '--output-logs=errors-only', '--no-color']
  await run('npx', args, {
    cwd: config.root,
    environment: {
      ...config.environment,
      TURBO_TELEMETRY_DISABLED: '1',
      DO_NOT_TRACK: '1',
      NO_COLOR: '1',
      FORCE_COLOR: '0',
    },
    log: join(config.data, 'log', 'build.log'),
    fix: 'The errors are above. If you did not change the code (git status), report them in an issue.',
    signal,
    onLine: (line) => {
      const cached = /Cached:\s+(\d+) cached, (\d+) total/.exec(line)
      if (cached !== null)
        step.result(
          cached[1] === cached[2] ? 'up to date' : `${Number(cached[2]) - Number(cached[1])} packages`,
        )
    },
  })
}
