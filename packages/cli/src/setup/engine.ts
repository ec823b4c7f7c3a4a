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
 * The engine's capabilities, or the error. One request; creates nothing.
 * @throws ConfigError as `engineOf` does.
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

/**
 * Packages that this machine lacks for an engine: none where one of any origin is there, or one is
 * named by DOCKER_HOST.
 */
function missingEnginePackages(config: CliConfig): string[] {
  if (config.dockerHost !== undefined || findProgram('dockerd', config.environment) !== undefined) return []
  return ['docker.io']
}

/**
 * Make sure that an engine answers: the one of DOCKER_HOST, the local one, or else a local one that
 * is started and outlives this command.
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
      'Start the engine that DOCKER_HOST names, or unset DOCKER_HOST to use a local one.',
      { cause: first },
    )
  }
  const missing = missingEnginePackages(config)
  // docker-cli is a package of its own from Debian 13 on; apparmor is used where the kernel has it;
  // cgroupfs-mount matters only where no systemd mounts them.
  if (missing.length > 0)
    await packages.install(missing, step, ['docker-cli', 'apparmor', 'cgroupfs-mount', 'ca-certificates'])
  if (process.getuid?.() !== 0) {
    throw new StepError(
      first.message,
      'Start it as root (systemctl start docker), and be in the group "docker", or run this as root.',
    )
  }
  step.doing('starting it')
  const log = await startEngine(config, signal)
  const deadline = performance.now() + START_SECONDS * 1000
  for (;;) {
    signal.throwIfAborted()
    const now = await askEngine(config)
    if (!(now instanceof Error))
      return step.result(`started, version ${now.version}; it keeps running after Sandlot ends`)
    if (performance.now() > deadline) {
      throw new StepError(
        `The Docker engine did not answer within ${START_SECONDS} seconds.`,
        `Its log is ${log}`,
        {
          cause: now,
          details: tailOf(log),
        },
      )
    }
    await sleep(250, undefined, { signal })
  }
}

/** Start the local engine by systemd where that runs, else by itself. Answers where its log is. */
async function startEngine(config: CliConfig, signal: AbortSignal): Promise<string> {
  const setup = join(config.data, 'log', 'setup.log')
  const options = { cwd: config.root, environment: config.environment, log: setup, signal }
  if (existsSync('/run/systemd/system')) {
    await run('systemctl', ['start', 'docker'], { ...options, fix: 'Look at: journalctl -u docker -n 50' })
    return 'shown by: journalctl -u docker'
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
  // A session of its own: it serves other users of the machine too, and outlives this command.
  const child = spawn(dockerd, [], {
    cwd: '/',
    env: engineEnvironment(config),
    stdio: ['ignore', out, out],
    detached: true,
  })
  child.once('error', () => {}) // seen as an engine that does not answer, with its log
  child.unref()
  closeSync(out)
  return log
}

/**
 * An engine gets no setting and no secret of ours; images are pulled through the machine's proxy.
 */
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
 * Whether the process of the engine's pid file is an engine, for example one that an interrupted
 * start left on its way up. A pid file whose number now belongs to something else is removed,
 * because dockerd refuses to start over it.
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
