/** The engine gate for the launcher: its socket, its deployment, and a check that it answers. */
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Environment } from '@sandlot/shared/config'
import { SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import type { CliConfig } from '../config.ts'

/** The id that the containers of these keys carry; undefined before the first start. */
export function deploymentOf(config: Pick<CliConfig, 'keys'>): string | undefined {
  const file = join(config.keys, 'deployment.json')
  if (!existsSync(file)) return undefined
  const keys: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (typeof keys === 'object' && keys !== null && 'id' in keys && typeof keys.id === 'string') return keys.id
  throw new Error(`${file} has no id.`)
}

export function needsGate(config: Pick<CliConfig, 'backend'>): boolean {
  return SANDBOX_BACKENDS[config.backend].needsEngine
}

export function gateSocket(config: Pick<CliConfig, 'data'>): string {
  return join(config.data, 'run', 'engine', 'docker.sock')
}

/** The environment of ai-agent, with the address of the gate instead of the engine's. */
export function agentGateEnvironment(config: CliConfig): Environment {
  if (!needsGate(config)) return config.environment
  const { DOCKER_CERT_PATH: _cert, DOCKER_TLS_VERIFY: _verify, ...rest } = config.environment
  return {
    ...rest,
    DOCKER_HOST: `unix://${gateSocket(config)}`,
    // The gate writes its id there before it listens; keys created later adopt it.
    SANDLOT_DEPLOYMENT: undefined,
    SANDLOT_DEPLOYMENT_FILE: join(config.data, 'run', 'engine', 'deployment'),
  }
}

/** The environment of the gate: the engine, and the id of existing keys. */
export function gateEnvironment(config: CliConfig): Environment {
  const known = deploymentOf(config)
  return known === undefined ? config.environment : { ...config.environment, SANDLOT_DEPLOYMENT: known }
}

/** Wait until the gate answers on its socket. Rejects only with the signal. */
export async function waitForGate(config: CliConfig, signal: AbortSignal): Promise<void> {
  while (!(await gateAnswers(config))) await sleep(50, undefined, { signal })
}

export function gateAnswers(config: Pick<CliConfig, 'data'>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(gateSocket(config))
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  return promise.finally(() => socket.destroy())
}
