import { join } from 'node:path'
import { SANDBOX_IMAGE } from '@sandlot/sandbox/controller/images'
import type { SystemPackages } from './apt.ts'
import type { CliConfig } from '../config.ts'
import { findProgram } from '../programs/find-program.ts'
import { run, succeeds } from '../programs/run.ts'
import { type Step, StepError } from '../steps.ts'

const PULLED_BASE = 'debian:bookworm-slim'
const MADE_BASE = 'sandlot/base:bookworm'

/** Builds the sandbox image from docker/sandbox, or pulls the operator's own. Reports the tag. */
export async function ensureSandboxImage(
  config: CliConfig,
  packages: SystemPackages,
  step: Step,
  signal: AbortSignal,
): Promise<void> {
  const log = join(config.data, 'log', 'images.log')
  const options = { cwd: config.root, environment: config.environment, log, signal }
  // The client is needed here even if DOCKER_HOST is another machine.
  if (findProgram('docker', config.environment) === undefined)
    await packages.install(['docker.io'], step, ['docker-cli'])
  const has = (image: string): Promise<boolean> =>
    succeeds('docker', ['image', 'inspect', image], config.environment)

  if (config.sandboxImage !== undefined && config.sandboxImage !== SANDBOX_IMAGE) {
    if (!(await has(config.sandboxImage))) {
      await run('docker', ['pull', config.sandboxImage], {
        ...options,
        fix: 'Check SANDLOT_SANDBOX_IMAGE, or unset it to use the default image.',
      })
    }
    return step.result(config.sandboxImage)
  }

  const base = config.environment['BASE']
  if (
    base === undefined &&
    !(await has(PULLED_BASE)) &&
    !(await has(MADE_BASE)) &&
    !(await pulls(config, signal))
  ) {
    step.doing('no registry answers; building a base image with debootstrap (about a minute)')
    if (findProgram('debootstrap', config.environment) === undefined)
      await packages.install(['debootstrap'], step)
    await run(join(config.root, 'docker', 'base-image.sh'), [], {
      ...options,
      fix: 'Or use a Debian image that you have: BASE=<image> ./sandlot up',
    })
  }
  const printed = await run(join(config.root, 'docker', 'build-images.sh'), [], {
    ...options,
    onLine: (line) => {
      const part = /^  … (.+)/.exec(line)?.[1]
      if (part !== undefined) step.doing(part)
    },
    fix: `Check that containers can reach the Debian mirror. The full output is in ${log}`,
  })
  const tag = printed.trim().split('\n').at(-1)?.split(' ').at(-1)
  if (tag === undefined || tag === '')
    throw new StepError('docker/build-images.sh printed no image.', `See ${log}.`)
  step.result(tag)
}

async function pulls(config: CliConfig, signal: AbortSignal): Promise<boolean> {
  try {
    await run('docker', ['pull', '--quiet', PULLED_BASE], {
      cwd: config.root,
      environment: config.environment,
      log: join(config.data, 'log', 'images.log'),
      fix: '',
      signal: AbortSignal.any([signal, AbortSignal.timeout(120_000)]),
    })
    return true
  } catch {
    signal.throwIfAborted()
    return false // no registry: the caller builds a base image
  }
}
