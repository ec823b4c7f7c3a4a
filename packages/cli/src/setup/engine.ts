import { spawn } from 'node:child_process'
import { mkdirSync, openSync, closeSync, readFileSync, rmSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import type { BackendCapabilities } from '@sandlot/sandbox/backend'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { messageOf } from '@sandlot/shared/base/errors'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SystemPackages } from './apt.ts'
import { type CliConfig, engineOf } from '../config.ts'
import { findProgram } from '../programs/find-program.ts'
import { isRunning, markOf } from '../processes/process-mark.ts'
import { run } from '../programs/run.ts'
import { type Step, StepError } from '../steps.ts'

const START_SECONDS = 60
const ENGINE_PID_FILE = '/var/run/docker.pid'

/**
 * The engine's capabilities, or the error of the one request.
 * @throws ConfigError like `engineOf`.
 */
export async function askEngine(config: CliConfig): Promise<BackendCapabilities | Error> {
  const backend = createDockerBackend({ deployment: 'launcher', ...engineOf(config) })
  try {
    return await backend.inventory.capabilities()
  } catch (error) {
    return error instanceof Error ? error : new Error(messageOf(error))
  } finally {
    await backend.inventory.close()
  }
}

/** Packages to install for an engine: none if DOCKER_HOST is set, or any engine is installed. */
function missingEnginePackages(config: CliConfig): string[] {
  if (config.dockerHost !== undefined || findProgram('dockerd', config.environment) !== undefined) return []
  return ['docker.io']
}

/**
 * Makes sure that an engine answers. Starts a local one, which outlives this command, if
 * DOCKER_HOST is unset.
 */
export async function ensureEngine(
  config: CliConfig,
  packages: SystemPackages,
  step: Step,
  signal: AbortSignal,
): Promise<void> {
  const first = await askEngine(config)
  if (!(first instanceof Error)) return step.result(`version ${first.version}`)
  if (config.dockerHost !== undefined) {
    throw new StepError(
      first.message,
      'Start the engine at DOCKER_HOST, or unset DOCKER_HOST to use a local one.',
      { cause: first },
    )
  }
  const missing = missingEnginePackages(config)
  // docker-cli is a separate package since Debian 13; cgroupfs-mount is needed only without
  // systemd.
  if (missing.length > 0)
    await packages.install(missing, step, ['docker-cli', 'apparmor', 'cgroupfs-mount', 'ca-certificates'])
  if (process.getuid?.() !== 0) {
    throw new StepError(
      first.message,
      'Start it as root (systemctl start docker) and join the group "docker", or run this command as root.',
    )
  }
  step.doing('starting the engine')
  const log = await startEngine(config, signal)
  const deadline = performance.now() + START_SECONDS * 1000
  for (;;) {
    signal.throwIfAborted()
    const now = await askEngine(config)
    if (!(now instanceof Error))
      return step.result(`started, version ${now.version}; it keeps running after Sandlot stops`)
    if (performance.now() > deadline) {
      throw new StepError(
        `The Docker engine did not answer within ${START_SECONDS} seconds.`,
        `See its log: ${log}`,
        {
          cause: now,
          details: tailOf(log),
        },
      )
    }
    await sleep(250, undefined, { signal })
  }
}

/** Starts the local engine, with systemd if that runs. Returns the place of its log. */
async function startEngine(config: CliConfig, signal: AbortSignal): Promise<string> {
  const setup = join(config.data, 'log', 'setup.log')
  const options = { cwd: config.root, environment: config.environment, log: setup, signal }
  if (existsSync('/run/systemd/system')) {
    await run('systemctl', ['start', 'docker'], { ...options, fix: 'See: journalctl -u docker -n 50' })
    return 'journalctl -u docker'
  }
  const log = join(config.data, 'log', 'dockerd.log')
  if (engineIsStarting()) return log
  const mount = findProgram('cgroupfs-mount', config.environment)
  if (mount !== undefined)
    await run(mount, [], {
      ...options,
      fix: 'Mount the cgroup file systems, then run the same command again.',
    })
  const dockerd = findProgram('dockerd', config.environment)
  if (dockerd === undefined)
    throw new StepError('dockerd is missing.', 'Install Docker Engine, then run the same command again.')
  mkdirSync(join(config.data, 'log'), { recursive: true, mode: 0o700 })
  const out = openSync(log, 'a')
  // A session of its own: it outlives this command.
  const child = spawn(dockerd, [], {
    cwd: '/',
    env: engineEnvironment(config),
    stdio: ['ignore', out, out],
    detached: true,
  })
  child.once('error', () => {}) // shows as an engine that does not answer
  child.unref()
  closeSync(out)
  return log
}

/** No setting and no secret of ours; the proxy is for pulling images. */
function engineEnvironment(config: CliConfig): Record<string, string> {
  const names = [
    'HOME',
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'NO_PROXY',
    'http_proxy',
    'https_proxy',
    'no_proxy',
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
  ]
  const kept = names.flatMap((name) =>
    config.environment[name] === undefined ? [] : [[name, config.environment[name]] as const],
  )
  return { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...Object.fromEntries(kept) }
}

/**
 * True if the engine's pid file names a running dockerd, for example of an interrupted start. A
 * stale pid file is removed, because dockerd would refuse to start.
 */
function engineIsStarting(): boolean {
  if (!existsSync(ENGINE_PID_FILE)) return false
  const mark = markOf(Number(readFileSync(ENGINE_PID_FILE, 'utf8').trim()))
  if (
    mark !== undefined &&
    isRunning(mark) &&
    readFileSync(`/proc/${mark.pid}/comm`, 'utf8').trim() === 'dockerd'
  )
    return true
  rmSync(ENGINE_PID_FILE, { force: true })
  return false
}

function tailOf(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').slice(-15).join('\n') : ''
}
