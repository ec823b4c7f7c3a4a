/** Settings of the gate. The only file here that reads the environment. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ConfigError, type Environment, readConfig, settingSchema } from '@sandlot/shared/config'
import { messageOf } from '@sandlot/shared/base/errors'
import type { SandboxLimits } from '@sandlot/sandbox/backend'
import { type EngineAddress, parseDockerHost } from '@sandlot/sandbox/backends/docker/connection'
import { readEngineTls } from '@sandlot/sandbox/backends/docker/tls-settings'
import { sandboxImages } from '@sandlot/sandbox/controller/images'
import { readLimits } from '@sandlot/sandbox/controller/limit-settings'

/** Longest path of a Unix socket, in bytes, without the terminating zero. */
const SOCKET_PATH_BYTES = 107

/** Volumes of people, which outlive their containers, that may exist at once. */
const MOST_VOLUMES = 10_000

interface GateConfig {
  /** The gate's socket, in a folder of its own. */
  socket: string
  /** Holds the deployment's id, readable by every user of the socket. */
  deploymentFile: string
  /** The id set by the operator or the launcher; undefined: the file's, or a new one. */
  deployment: string | undefined
  engine: EngineAddress
  /** Names of the images that may be inspected and run. */
  images: readonly string[]
  runtime: string | undefined
  /** The debug profile is granted per user; the gate does not know users. */
  debug: boolean
  /** Upper limits of a sandbox, from the settings by which ai-agent requests one. */
  limits: SandboxLimits
  most: { containers: number; volumes: number }
}

/** @throws ConfigError with every problem at once. */
export function readGateConfig(env: Environment = process.env): GateConfig {
  const read = readConfig(settingSchema('engine-gate'), env, (path) => readFileSync(path, 'utf8'))
  const problems: string[] = []
  const folder = join(resolve(read.SANDLOT_DATA), 'run', 'engine')
  const socket = join(folder, 'docker.sock')
  if (Buffer.byteLength(socket) > SOCKET_PATH_BYTES)
    problems.push(`SANDLOT_DATA: too long; ${socket} may have ${SOCKET_PATH_BYTES} bytes`)
  const engine = readEngine(read.DOCKER_HOST, env, problems)
  const limits = readLimits(read, problems)
  if (problems.length > 0 || engine === undefined) throw new ConfigError(problems)
  return {
    socket,
    deploymentFile: join(folder, 'deployment'),
    deployment: read.SANDLOT_DEPLOYMENT,
    engine,
    images: Object.values(sandboxImages(read.SANDLOT_SANDBOX_IMAGE)),
    runtime: read.SANDLOT_SANDBOX_RUNTIME,
    debug: read.SANDLOT_SANDBOX_DEBUG_USERS !== undefined,
    limits,
    most: {
      containers: read.SANDLOT_ENGINE_MAX_CONTAINERS,
      volumes: MOST_VOLUMES,
    },
  }
}

/** The engine's address, with the docker command's own settings for TLS. */
function readEngine(
  dockerHost: string | undefined,
  env: Environment,
  problems: string[],
): EngineAddress | undefined {
  const tls = readEngineTls(env, problems)
  try {
    return parseDockerHost(dockerHost, tls)
  } catch (error) {
    problems.push(messageOf(error))
    return undefined
  }
}
