import { join } from 'node:path'
import { childEnvironment, type ChildName } from './child-env.ts'
import type { CliConfig } from './config.ts'
import type { ChildSpec } from './supervise.ts'

/** How one of the two processes is started: from its build, with its own environment and its own log. */
export function childSpec(name: ChildName, config: CliConfig): ChildSpec {
  return {
    name,
    command: process.execPath,
    args: ['--enable-source-maps', join(config.root, 'packages', name, 'dist', 'main.js')],
    cwd: config.root,
    environment: childEnvironment(name, {
      ...config.environment,
      SANDLOT_WEB_DIST:
        config.environment['SANDLOT_WEB_DIST'] ?? join(config.root, 'packages', 'web', 'dist'),
    }),
    log: logOf(name, config),
  }
}

export function logOf(name: ChildName, config: CliConfig): string {
  return join(config.data, 'log', `${name}.log`)
}

/** Where a running `up` says who it is. */
export function recordFile(config: CliConfig): string {
  return join(config.data, 'run', 'up.json')
}
