/**
 * A Docker engine of a test's own: its own containerd, data root, socket and cgroup, so that it may
 * be killed, frozen and filled. Starts in a fraction of a second. Nothing here touches the host's
 * engine beyond reading its image once.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { accessSync, closeSync, constants, openSync, readFileSync } from 'node:fs'
import { mkdir, open, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { testConfig } from '../support/config.ts'
import { ended, isRunning } from './child.ts'
import { clearEngine, clearLeftEngines, engineFolder, powerOff } from './own-engine-folder.ts'
import { smallImage } from './own-image.ts'

const run = promisify(execFile)
const LONGEST_MS = 60_000

export interface OwnEngineOptions {
  /** Containers live on while dockerd is down. Default false. */
  liveRestore?: boolean
  /** Size of the tmpfs that holds the data root. Default 512 MiB. */
  bytes?: number
  /** OCI runtimes to register: name → program and arguments. */
  runtimes?: Record<string, { path: string; runtimeArgs?: string[] }>
  /** Map every container's uids to those of this user of /etc/subuid. */
  usernsRemap?: string
}

export interface OwnEngine {
  /** Everything of this engine is in here. */
  folder: string
  /** For `DOCKER_HOST`. */
  host: string
  /** The docker command on this engine. Returns what it printed, trimmed. */
  docker(...args: string[]): Promise<string>
  /** Process id of dockerd; throws when it does not run. */
  pid(): number
  /** SIGKILL dockerd and wait until it is gone. */
  kill(): Promise<void>
  /** SIGTERM dockerd, as systemd would, and wait until it is gone. */
  stop(): Promise<void>
  /** Start dockerd again after `kill` or `stop`. */
  start(): Promise<void>
  /**
   * Like a power failure and a boot of the host: every process and all runtime state lost, the data
   * root preserved.
   */
  reboot(): Promise<void>
  /** Host process ids of a container's PID 1 and of its shim. */
  processesOf(container: string): { init: number; shim: number }
  /**
   * Fill the disk of the data root to its last byte; the function that is returned frees it again.
   */
  fillDisk(): Promise<() => Promise<void>>
  /** End and remove everything. */
  dispose(): Promise<void>
}

/** Why this machine cannot run an engine of a test's own; undefined when it can. */
export function whyNoOwnEngine(): string | undefined {
  if (process.getuid?.() !== 0) return 'an engine of its own needs root'
  const missing = ['dockerd', 'containerd', 'mount', 'umount'].filter((program) => !findProgram(program))
  return missing.length > 0 ? `${missing.join(', ')} not installed here` : undefined
}

/** The path of a program, looked for where daemons are installed too. */
export function findProgram(name: string): string | undefined {
  return ['/usr/bin', '/usr/sbin', '/usr/local/bin', '/usr/local/sbin', '/bin', '/sbin']
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

/**
 * Start one, with the sandbox image loaded under the usual name. Call `dispose` at the end,
 * whatever happened.
 */
export async function startOwnEngine(options: OwnEngineOptions = {}): Promise<OwnEngine> {
  await clearLeftEngines()
  const folder = engineFolder(randomBytes(3).toString('hex'))
  const host = `unix://${join(folder, 'd.sock')}`
  const paths = { data: join(folder, 'data'), run: join(folder, 'run'), pidFile: join(folder, 'docker.pid') }
  let containerd: ChildProcess | undefined
  let dockerd: ChildProcess | undefined

  const docker = async (...args: string[]): Promise<string> => {
    const { stdout } = await run('docker', ['-H', host, ...args], { maxBuffer: 2 ** 26 })
    return stdout.trim()
  }

  async function startContainerd(): Promise<void> {
    await mkdir(paths.run, { recursive: true })
    containerd = daemon('containerd', ['-c', join(folder, 'containerd.toml')], folder)
  }

  async function start(): Promise<void> {
    // Left by a killed dockerd; the number in it may be another process's by now.
    await rm(paths.pidFile, { force: true })
    dockerd = daemon('dockerd', dockerdArguments(folder, options), folder)
    await answering(
      dockerd,
      () => docker('version', '--format', '{{.Server.Version}}'),
      join(folder, 'dockerd.log'),
    )
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (!dockerd) return
    const gone = ended(dockerd)
    dockerd.kill(signal)
    await gone
  }

  const engine: OwnEngine = {
    folder,
    host,
    docker,
    pid() {
      if (dockerd?.pid === undefined || !isRunning(dockerd)) throw new Error('dockerd does not run')
      return dockerd.pid
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    start,
    async reboot() {
      await end('SIGKILL')
      const gone = containerd && ended(containerd)
      containerd?.kill('SIGKILL')
      await gone
      await powerOff(folder, paths.data)
      await rm(paths.run, { recursive: true, force: true })
      await startContainerd()
      await start()
    },
    processesOf(container) {
      const bundle = join(paths.run, 'containerd/io.containerd.runtime.v2.task/moby', container)
      const init = Number(readFileSync(join(bundle, 'init.pid'), 'utf8'))
      const shim = Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${init}/status`, 'utf8'))?.[1])
      return { init, shim }
    },
    fillDisk: () => fillDisk(paths.data),
    async dispose() {
      await end('SIGKILL')
      containerd?.kill('SIGKILL')
      await clearEngine(folder)
    },
  }

  try {
    await mkdir(paths.data, { recursive: true, mode: 0o755 })
    await run('mount', [
      '-t',
      'tmpfs',
      '-o',
      `size=${options.bytes ?? 2 ** 29},mode=0755`,
      'sandlot-test',
      paths.data,
    ])
    await writeConfigs(folder, options)
    await startContainerd()
    await start()
    await load(host, await smallImage())
    return engine
  } catch (error) {
    await engine.dispose()
    throw error
  }
}

function dockerdArguments(folder: string, options: OwnEngineOptions): string[] {
  return [
    ['--containerd', join(folder, 'c.sock')],
    ['--data-root', join(folder, 'data/docker')],
    ['--exec-root', join(folder, 'run/docker')],
    ['--pidfile', join(folder, 'docker.pid')],
    ['--config-file', join(folder, 'daemon.json')],
    ['--host', `unix://${join(folder, 'd.sock')}`],
    ['--cgroup-parent', `/${folder.slice(folder.lastIndexOf('/') + 1)}`],
    ['--exec-opt', 'native.cgroupdriver=cgroupfs'],
    ['--storage-driver', 'overlay2'],
    ['--bridge=none', '--iptables=false', '--ip6tables=false', '--ip-forward=false', '--ip-masq=false'],
    ['--userland-proxy=false', '--shutdown-timeout=5'],
    options.liveRestore ? ['--live-restore'] : [],
    options.usernsRemap === undefined ? [] : ['--userns-remap', options.usernsRemap],
  ].flat()
}

/** Both daemons' configuration files; nothing is read from /etc. */
async function writeConfigs(folder: string, options: OwnEngineOptions): Promise<void> {
  await writeFile(join(folder, 'daemon.json'), JSON.stringify({ runtimes: options.runtimes ?? {} }))
  const unused = [
    'grpc.v1.cri',
    ...['btrfs', 'zfs', 'aufs', 'devmapper'].map((name) => `snapshotter.v1.${name}`),
  ]
  await writeFile(
    join(folder, 'containerd.toml'),
    [
      'version = 2',
      `root = "${join(folder, 'data/containerd')}"`,
      `state = "${join(folder, 'run/containerd')}"`,
      `disabled_plugins = [${unused.map((name) => `"io.containerd.${name}"`).join(', ')}]`,
      `[grpc]\naddress = "${join(folder, 'c.sock')}"`,
      `[ttrpc]\naddress = "${join(folder, 'c.sock.ttrpc')}"`,
    ].join('\n'),
  )
}

/**
 * A daemon whose output goes to a log in the folder. In a network of its own: a dockerd with
 * `--bridge=none` removes docker0, which would be the machine's own engine's.
 */
function daemon(name: string, args: string[], folder: string): ChildProcess {
  const log = openSync(join(folder, `${name}.log`), 'a')
  try {
    const child = spawn('unshare', ['--net', '--', findProgram(name) ?? name, ...args], {
      stdio: ['ignore', log, log],
    })
    // A failure to start is reported by the caller that waits for its answer.
    child.on('error', () => {})
    return child
  } finally {
    closeSync(log)
  }
}

async function answering(child: ChildProcess, ask: () => Promise<unknown>, log: string): Promise<void> {
  const started = performance.now()
  while (performance.now() - started < LONGEST_MS) {
    if (!isRunning(child)) break
    try {
      await ask()
      return
    } catch {
      await sleep(50)
    }
  }
  const said = await readFile(log, 'utf8').catch(() => '')
  throw new Error(`The engine of the test did not come up. Its last words: ${said.slice(-1_500)}`)
}

async function load(host: string, tar: Buffer): Promise<void> {
  const changes = ['ENTRYPOINT ["/usr/bin/sbxd"]', 'WORKDIR /workspace', 'USER 30000:30000']
  const args = ['-H', host, 'import', ...changes.flatMap((change) => ['-c', change]), '-', testConfig.image]
  const child = spawn('docker', args, { stdio: ['pipe', 'ignore', 'pipe'] })
  const complaints = Array.fromAsync(child.stderr as AsyncIterable<Buffer>)
  // A client that ends early breaks the pipe; its exit code shows it.
  child.stdin.on('error', () => {})
  child.stdin.end(tar)
  await ended(child)
  if (child.exitCode !== 0)
    throw new Error(`The image was not loaded: ${Buffer.concat(await complaints).toString()}`)
}

/** Until not one byte more can be written, by root. */
export async function fillDisk(directory: string): Promise<() => Promise<void>> {
  const filler = join(directory, 'filler')
  const file = await open(filler, 'w')
  try {
    for (let size = 2 ** 22; size >= 1;) {
      try {
        await file.write(Buffer.alloc(size))
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
        size = Math.floor(size / 2)
      }
    }
  } finally {
    await file.close()
  }
  const { bavail } = await statfs(directory)
  if (bavail > 0) throw new Error(`${directory} is not full: ${bavail} blocks are left.`)
  return () => rm(filler, { force: true })
}
