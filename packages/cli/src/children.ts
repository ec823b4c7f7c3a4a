import { join } from 'node:path'
import type { Environment } from '@sandlot/shared/config'
import { childEnvironment, type ChildName } from './child-env.ts'
import type { CliConfig } from './config.ts'
import { agentGateEnvironment, gateEnvironment } from './gate.ts'
import type { ChildSpec } from './supervise.ts'

/**
 * How one of the processes is started: from its build, with its own environment and its own log.
 */
export function childSpec(name: ChildName, config: CliConfig): ChildSpec {
  return {
    name,
    command: process.execPath,
    args: [join(config.root, 'packages', name, 'dist', 'main.js')],
    cwd: config.root,
    environment: childEnvironment(name, {
      ...environmentFor(name, config),
      SANDLOT_WEB_DIST:
        config.environment['SANDLOT_WEB_DIST'] ?? join(config.root, 'packages', 'web', 'dist'),
    }),
    log: logOf(name, config),
  }
}

/** Only the gate gets the address of the engine. */
export function environmentFor(name: ChildName, config: CliConfig): Environment {
  if (name === 'engine-gate') return gateEnvironment(config)
  return name === 'ai-agent' ? agentGateEnvironment(config) : config.environment
}

export function logOf(name: ChildName, config: CliConfig): string {
  return join(config.data, 'log', `${name}.log`)
}

/** The record of a running `up`. */
export function recordFile(config: CliConfig): string {
  return join(config.data, 'run', 'up.json')
}
