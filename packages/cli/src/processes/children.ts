import { join, relative, resolve } from 'node:path'
import type { Environment } from '@sandlot/shared/config'
import { childEnvironment, type ChildName } from './child-env.ts'
import type { CliConfig } from '../config.ts'
import { agentGateEnvironment, gateEnvironment } from '../deployment/gate.ts'
import { isOnPostgres, replicaId } from '../deployment/replicas.ts'
import type { ChildSpec } from './supervise.ts'

/** The name of a process; of several replicas with its number. */
export function labelOf(name: ChildName, number: number | undefined): string {
  return number === undefined ? name : `${name}-${number}`
}

/**
 * How one of the processes is started: from its build, with its own environment and its own log.
 * `number`: of several.
 */
export function childSpec(name: ChildName, config: CliConfig, number?: number): ChildSpec {
  return {
    name: labelOf(name, number),
    command: process.execPath,
    args: [
      join(config.root, 'packages', name, 'dist', 'main.js'),
      ...(name === 'backup' ? ['scheduled', ...settingsArguments(config)] : []),
    ],
    cwd: config.root,
    environment: {
      ...childEnvironment(name, {
        ...environmentFor(name, config),
        SANDLOT_WEB_DIST:
          config.environment['SANDLOT_WEB_DIST'] ?? join(config.root, 'packages', 'web', 'dist'),
      }),
      ...replicaEnvironment(name, config, number),
    },
    log: logOf(name, config, number),
  }
}

/** Agents on PostgreSQL have an id each, services a port each. */
function replicaEnvironment(
  name: ChildName,
  config: CliConfig,
  number: number | undefined,
): Record<string, string> {
  if (name === 'ai-agent' && isOnPostgres(config)) return { SANDLOT_REPLICA: replicaId(config, number) }
  if (name === 'service' && number !== undefined) return { PORT: String(config.port + number - 1) }
  return {}
}

/** Only the gate, and backups, get the address of the engine. */
export function environmentFor(name: ChildName, config: CliConfig): Environment {
  if (name === 'engine-gate') return gateEnvironment(config)
  return name === 'ai-agent' ? agentGateEnvironment(config) : config.environment
}

/**
 * Arguments of the backup program for the files with settings that are outside of the data folder:
 * `.env`, the configuration file, and what `NAME_FILE` names, but never the passphrase.
 */
export function settingsArguments({ root, data, environment }: CliConfig): string[] {
  const named = Object.entries(environment).filter(
    ([name]) =>
      name === 'SANDLOT_CONFIG' ||
      (name.endsWith('_FILE') && /^(SANDLOT|OPENAI|MCP|GOOGLE|DUFFEL|DATABASE)_/.test(name)),
  )
  const files = named.flatMap(([name, path]) =>
    path === undefined || path === '' || name === 'SANDLOT_BACKUP_PASSPHRASE_FILE'
      ? []
      : [resolve(root, path)],
  )
  const outside = files.filter((file) => relative(data, file).startsWith('..'))
  return [join(root, '.env'), ...outside].flatMap((file) => ['--settings', file])
}

export function logOf(name: ChildName, config: CliConfig, number?: number): string {
  return join(config.data, 'log', `${labelOf(name, number)}.log`)
}

/** The record of a running `up`. */
export function recordFile(config: CliConfig): string {
  return join(config.data, 'run', 'up.json')
}
