import { join, relative, resolve } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import type { Environment } from '@sandlot/shared/config'
import { childEnvironment, type ChildName } from './child-env.ts'
import type { CliConfig } from '../config.ts'
import { agentGateEnvironment, gateEnvironment } from '../deployment/gate.ts'
import { isOnPostgres, replicaId } from '../deployment/replicas.ts'
import { readRecord, type UpRecord } from './pid-file.ts'
import { isRunning } from './process-mark.ts'
import type { ChildSpec } from './supervise.ts'

/** MiB of V8's old generation and of half its new one, as V8 has them in a container of 2 GB. */
const HEAP_MIB = 1024
const SEMI_SPACE_MIB = 32

/** The name of a process, with the number of its replica. */
export function labelOf(name: ChildName, number: number | undefined): string {
  return number === undefined ? name : `${name}-${number}`
}

/** Starts a process from its build, with its own environment and log. `number`: its replica. */
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
      NODE_OPTIONS: nodeOptions(config.environment['NODE_OPTIONS']),
    },
    log: logOf(name, config, number),
  }
}

/**
 * Flags of Node that limit V8's heap, to less where V8 has less here by itself. With a higher limit
 * it collects later, and garbage stays. `given`: the operator's own flags, which win.
 */
export function nodeOptions(given = ''): string {
  const own = Math.floor(getHeapStatistics().heap_size_limit / 2 ** 20)
  const limits = `--max-old-space-size=${Math.min(HEAP_MIB, own)} --max-semi-space-size=${SEMI_SPACE_MIB}`
  return `${limits} ${given}`.trim()
}

/** On PostgreSQL, each agent has its own id and each service its own port. */
function replicaEnvironment(
  name: ChildName,
  config: CliConfig,
  number: number | undefined,
): Record<string, string> {
  if (name === 'ai-agent' && isOnPostgres(config)) return { SANDLOT_REPLICA: replicaId(config, number) }
  if (name === 'service' && number !== undefined) return { PORT: String(config.port + number - 1) }
  return {}
}

/** Only the gate and backups receive the address of the engine. */
export function environmentFor(name: ChildName, config: CliConfig): Environment {
  if (name === 'engine-gate') return gateEnvironment(config)
  return name === 'ai-agent' ? agentGateEnvironment(config) : config.environment
}

/**
 * Arguments of the backup program for settings outside of the data folder: `.env`, the
 * configuration file and the files of `NAME_FILE`, but never the passphrase.
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
export function recordFile(config: Pick<CliConfig, 'data'>): string {
  return join(config.data, 'run', 'up.json')
}

/** The record of `up`, if that runs. */
export function runningRecord(config: Pick<CliConfig, 'data'>): UpRecord | undefined {
  const record = readRecord(recordFile(config))
  return record !== undefined && isRunning(record.up) ? record : undefined
}
