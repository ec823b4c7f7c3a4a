import { readdirSync } from 'node:fs'
import type { CliConfig } from '../config.ts'
import { findProgram } from '../programs/find-program.ts'
import { run, succeeds } from '../programs/run.ts'
import { type Step, StepError } from '../steps.ts'
import { join } from 'node:path'

/** Installs Debian packages. Never removes one: a conflict is an error. */
export interface SystemPackages {
  /**
   * Installs `packages`, and `optional` ones if the distribution has them.
   * @throws StepError with the command to run by hand, when this user or machine cannot.
   */
  install(packages: string[], step: Step, optional?: string[]): Promise<void>
}

const LOCK_SECONDS = 300

export function systemPackages(config: CliConfig, signal: AbortSignal): SystemPackages {
  const environment = { ...config.environment, DEBIAN_FRONTEND: 'noninteractive', NEEDRESTART_SUSPEND: '1' }
  const options = {
    cwd: config.root,
    environment,
    log: join(config.data, 'log', 'setup.log'),
    signal,
  }
  let listsAreNew = false

  return {
    async install(packages, step, optional = []) {
      const able = findProgram('apt-get', environment) !== undefined && process.getuid?.() === 0
      if (packages.length === 0 && !able) return
      step.doing(`installing ${[...packages, ...optional].join(', ')}`)
      const byHand = `Install them by hand, then run the same command again: apt-get install --no-remove ${packages.join(' ')}`
      if (findProgram('apt-get', environment) === undefined) {
        throw new StepError(
          `${packages.join(', ')} ${packages.length === 1 ? 'is' : 'are'} missing, and this machine has no apt-get.`,
          'Install them with your package manager, then run the same command again.',
        )
      }
      if (process.getuid?.() !== 0) {
        throw new StepError(
          `Installing ${packages.join(', ')} needs root.`,
          `As root: apt-get install --no-remove ${packages.join(' ')}`,
        )
      }
      // Until an interrupted installation is finished, apt refuses everything.
      if (interruptedDpkg())
        await run('dpkg', ['--configure', '-a'], { ...options, fix: 'Run: dpkg --configure -a' })
      const lock = ['-o', `DPkg::Lock::Timeout=${LOCK_SECONDS}`]
      if (!listsAreNew) {
        await run('apt-get', [...lock, 'update'], {
          ...options,
          fix: 'Check that the Debian mirror is reachable: apt-get update',
        })
        listsAreNew = true
      }
      const wanted = [...packages]
      for (const name of optional) {
        if (await succeeds('apt-cache', ['show', name], environment)) wanted.push(name)
      }
      await run('apt-get', [...lock, 'install', '-y', '--no-remove', '--no-install-recommends', ...wanted], {
        ...options,
        fix: byHand,
      })
    },
  }
}

/** dpkg has numbered files in this folder only while it works. */
function interruptedDpkg(): boolean {
  try {
    return readdirSync('/var/lib/dpkg/updates').some((name) => /^\d+$/.test(name))
  } catch {
    return false // not a Debian machine
  }
}
