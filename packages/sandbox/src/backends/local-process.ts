import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readdir, realpath, rm } from 'node:fs/promises'
import { release } from 'node:os'
import { dirname, join } from 'node:path'
import { Duplex, type Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import type { BackendCopies, BackendSandbox, SandboxBackend, SandboxSpec, SandboxState } from '../backend.ts'
import { claimedName, LABEL } from '../names.ts'
import { hasCode } from '#shared/base/errors'
import { SandboxError, workspaceMissing } from '../errors.ts'
import { CHANGED_WHILE_READ, tarArguments } from './copy-tar.ts'
import { freeSpace } from './free-space.ts'

/** Time for sbxd to kill its descendants before it is killed itself. */
const STOP_MS = 5_000

export interface LocalProcessOptions {
  /** The sbxd binary: `make -C docker/sandbox`. */
  sbxd: string
  /** The library for sessions, built with it. Default: `session.so` next to `sbxd`. */
  sessionLibrary?: string
  /** Parent directory of the volumes; created when missing. */
  directory: string
  /** `PATH` of the commands. Default: the usual system directories. */
  path?: string
  /**
   * Seconds without a controller after which a sandbox exits. Default 0 = never: it ends with this
   * process.
   */
  leaseSeconds?: number
  /**
   * Pauses by stopping sbxd itself; its commands keep running. Only for tests of pausing. Default:
   * pausing is refused.
   */
  freezes?: boolean
}

interface LocalSandbox {
  id: string
  name: string
  spec: SandboxSpec
  state: SandboxState
  child?: ChildProcess
  streams: AttachStreams
  /** Resolves when the child has ended. */
  ended: Promise<void>
}

/**
 * Sandboxes as plain child processes: sbxd and its commands run as this user, on this machine, with
 * its files, network and other processes. **It isolates nothing.** For tests only. Sandboxes
 * end with this process; volumes stay. Every method rejects with a `SandboxError`.
 */
export function createLocalProcessBackend(options: LocalProcessOptions): SandboxBackend {
  const sandboxes = new Map<string, LocalSandbox>()
  /** Labels of each volume's last sandbox, for the life of this process: a folder has none. */
  const volumeLabels = new Map<string, Record<string, string>>()
  const path = options.path ?? '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

  function find(idOrName: string): LocalSandbox | undefined {
    return sandboxes.get(idOrName) ?? [...sandboxes.values()].find((sandbox) => sandbox.name === idOrName)
  }

  function must(id: string): LocalSandbox {
    const sandbox = sandboxes.get(id)
    if (!sandbox) throw new SandboxError('sandbox_lost', 'This sandbox no longer exists')
    return sandbox
  }

  function volumePath(name: string): string {
    if (!/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(name))
      throw new SandboxError('invalid_arguments', `"${name}" is not a name for a volume`)
    return join(options.directory, name)
  }

  async function ensure({ volume, labels, hasWorkspace }: SandboxSpec): Promise<void> {
    if (hasWorkspace && !existsSync(volumePath(volume))) throw workspaceMissing(volume)
    await mkdir(volumePath(volume), { recursive: true })
    volumeLabels.set(volume, { ...labels })
  }

  async function start(sandbox: LocalSandbox): Promise<void> {
    if (sandbox.child) return
    const { limits, volume } = sandbox.spec
    if (!existsSync(volumePath(volume))) throw workspaceMissing(volume)
    const workspace = await realpath(volumePath(volume))
    const args = [
      '--workspace',
      workspace,
      '--lease',
      String(options.leaseSeconds ?? 0),
      '--session-library',
      options.sessionLibrary ?? join(dirname(options.sbxd), 'session.so'),
      '--limit-fsize',
      String(limits.diskBytes),
      '--limit-nofile',
      String(limits.openFiles),
    ]
    const child = spawn(options.sbxd, args, {
      cwd: workspace,
      // The same short list as in a container, without the controller's own environment.
      env: { PATH: path, HOME: workspace, LANG: 'C.UTF-8', TERM: 'xterm-256color', TZ: 'UTC', SANDBOX: '1' },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let stderrTail = ''
    child.stderr.on('data', (chunk: Buffer) => {
      stderrTail = `${stderrTail}${chunk.toString()}`.slice(-500)
    })
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', (cause) =>
        reject(
          new SandboxError(
            'engine_unavailable',
            `sbxd could not be started (${cause.message}). Build it with \`make -C docker/sandbox\`.`,
            { cause },
          ),
        ),
      )
    })
    sandbox.child = child
    sandbox.state = 'running'
    sandbox.ended = new Promise((resolve) => {
      child.once('exit', () => {
        sandbox.state = 'stopped'
        delete sandbox.child
        sandbox.streams.end(stderrTail.trim())
        sandbox.streams = new AttachStreams()
        resolve()
      })
    })
    sandbox.streams.begin(child)
  }

  async function stop(sandbox: LocalSandbox): Promise<void> {
    const { child } = sandbox
    if (!child) return
    child.kill('SIGTERM')
    child.kill('SIGCONT')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    await sandbox.ended
    clearTimeout(timer)
  }

  return {
    async create(spec) {
      const existing = find(spec.name)
      if (existing) return describe(existing)
      await ensure(spec)
      const other = find(spec.name)
      if (other) return describe(other)
      const id = randomBytes(32).toString('hex')
      const made: LocalSandbox = {
        id,
        name: spec.name,
        spec,
        state: 'created',
        streams: new AttachStreams(),
        ended: Promise.resolve(),
      }
      sandboxes.set(id, made)
      return describe(made)
    },

    async open({ id }) {
      const sandbox = must(id)
      const stream = sandbox.streams.open()
      stream.on('error', () => {})
      try {
        await start(sandbox)
      } catch (error) {
        stream.destroy()
        throw error
      }
      return { stream, keyId: id }
    },

    async stop(id) {
      const sandbox = sandboxes.get(id)
      if (sandbox) await stop(sandbox)
    },

    async pause(id) {
      if (!options.freezes)
        throw new SandboxError('engine_unavailable', 'A local process is not paused; stop it instead')
      freeze(must(id), 'paused')
    },

    async resume(id) {
      if (!options.freezes) throw new SandboxError('engine_unavailable', 'A local process is never paused')
      freeze(must(id), 'running')
    },

    async claim(id, { tag, generation }) {
      const sandbox = must(id)
      const { labels, slot } = sandbox.spec
      const name = claimedName(labels[LABEL.deployment] ?? '', slot, tag, generation)
      if ([...sandboxes.values()].some((other) => other !== sandbox && other.name === name))
        throw new SandboxError('exists', `A sandbox named ${name} exists already`)
      sandbox.name = name
    },

    async remove(id) {
      const sandbox = sandboxes.get(id)
      if (!sandbox) return
      await stop(sandbox)
      sandbox.streams.end()
      sandboxes.delete(id)
    },

    async list(labels) {
      const wanted = Object.entries(labels)
      return [...sandboxes.values()]
        .filter(({ spec }) => wanted.every(([name, value]) => spec.labels[name] === value))
        .map(describe)
    },

    inventory: {
      async capabilities() {
        return {
          name: 'local-process',
          isolates: false,
          version: release(),
          runtimes: [],
          cgroup: 'none',
          quota: 'soft',
          pause: options.freezes ?? false,
          warnings: [
            'Commands run directly on this machine as the user that runs Sandlot. Nothing is isolated: they can read its files, use its network and end its processes.',
          ],
        }
      },

      async inspect(idOrName) {
        const sandbox = find(idOrName)
        return sandbox && describe(sandbox)
      },

      volumes: {
        emptyFirst: true,

        async list() {
          await mkdir(options.directory, { recursive: true })
          const names = await readdir(options.directory)
          return names.map((name) => ({ name, labels: volumeLabels.get(name) ?? {} }))
        },

        has: async (name) => existsSync(volumePath(name)),

        ensure,

        async remove(name) {
          const user = [...sandboxes.values()].find((sandbox) => sandbox.spec.volume === name)
          if (user)
            throw new SandboxError('exists', `The volume is in use by ${user.name}; remove that first`)
          await rm(volumePath(name), { recursive: true, force: true })
        },
      },

      copies: folderCopies(volumePath, (name, labels) => volumeLabels.set(name, labels)),

      hostDisk: () => freeSpace(options.directory),

      async close() {
        await Promise.all([...sandboxes.values()].map(stop))
        for (const sandbox of sandboxes.values()) sandbox.streams.end()
      },
    },
  }
}

function folderCopies(
  pathOf: (name: string) => string,
  made: (name: string, labels: Record<string, string>) => void,
): BackendCopies {
  const tar = (act: 'read' | 'write', name: string) => {
    const child = spawn('tar', tarArguments(act, pathOf(name)), { stdio: ['pipe', 'pipe', 'pipe'] })
    let complaints = ''
    child.stderr.on('data', (bytes: Buffer) => (complaints = `${complaints}${bytes.toString()}`.slice(-500)))
    const ended = once(child, 'close') as Promise<[code: number | null]>
    // Awaited later.
    ended.catch(() => {})
    return {
      child,
      end: async (highest: number): Promise<void> => {
        const [code] = await ended
        if (code === null || code > highest)
          throw new SandboxError('engine_unavailable', `tar failed for ${name}: ${complaints.trim()}`)
      },
    }
  }
  return {
    exists: async (name) => existsSync(pathOf(name)),
    async *read(name) {
      if (!existsSync(pathOf(name)))
        throw new SandboxError('sandbox_lost', `Volume ${name} no longer exists.`)
      const { child, end } = tar('read', name)
      try {
        for await (const bytes of child.stdout) yield bytes as Buffer
        await end(CHANGED_WHILE_READ)
      } finally {
        child.kill('SIGKILL')
      }
    },
    async write({ name, labels }, bytes) {
      if (existsSync(pathOf(name))) throw new SandboxError('exists', `The volume ${name} exists already.`)
      await mkdir(pathOf(name), { recursive: true })
      try {
        const { child, end } = tar('write', name)
        // tar may exit before the end of its input; its exit code tells more than a broken pipe.
        const [sent] = await Promise.allSettled([pipeline(bytes, child.stdin)])
        await end(0)
        if (sent.status === 'rejected' && !hasCode(sent.reason, 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'))
          throw sent.reason
      } catch (error) {
        await rm(pathOf(name), { recursive: true, force: true })
        throw error
      }
      made(name, { ...labels })
    },
    removeLeftHelpers: async () => {},
  }
}

function freeze(sandbox: LocalSandbox, wanted: 'paused' | 'running'): void {
  if (!sandbox.child)
    throw new SandboxError(
      'engine_unavailable',
      `The sandbox is ${sandbox.state}, neither running nor paused`,
    )
  sandbox.child.kill(wanted === 'paused' ? 'SIGSTOP' : 'SIGCONT')
  sandbox.state = wanted
}

function describe({ id, name, state, spec }: LocalSandbox): BackendSandbox {
  return { id, name, state, labels: { ...spec.labels } }
}

/**
 * Streams to one sbxd, like a container's attach streams: any number, before its start or after;
 * each receives all later output and may write. Output without a stream is dropped. The child's own
 * pipes stay open when a stream closes.
 */
class AttachStreams {
  readonly #attached = new Set<Duplex>()
  #input: Writable | undefined
  #output: Readable | undefined
  /** Writes pending until the child starts or reads. */
  readonly #waiting = new Set<() => void>()

  open(): Duplex {
    const stream: Duplex = new Duplex({
      read: () => this.#resume(),
      write: (chunk: Buffer, _encoding, done) => this.#write(stream, chunk, done),
      // Half-closing one attach stream does not close the child's stdin.
      final: (done) => done(),
      destroy: (error, done) => {
        this.#attached.delete(stream)
        this.#resume()
        this.#wakeAll()
        done(error)
      },
    })
    this.#attached.add(stream)
    return stream
  }

  /** After the child was spawned, with pipes for stdin and stdout. */
  begin(child: ChildProcess): void {
    const { stdin, stdout } = child
    if (!stdin || !stdout) throw new SandboxError('engine_unavailable', 'sbxd was started without pipes')
    this.#input = stdin
    this.#output = stdout
    // A write to a child that has just died fails here; its exit event reports the death.
    stdin.on('error', () => {})
    stdin.on('drain', () => this.#wakeAll())
    stdout.on('data', (chunk: Buffer) => {
      for (const stream of this.#attached) if (!stream.push(chunk)) stdout.pause()
    })
    this.#wakeAll()
  }

  /**
   * After the child's exit: closes every stream, with its last stderr output, if any, as the
   * reason.
   */
  end(stderrTail = ''): void {
    const why = stderrTail ? new SandboxError('sandbox_lost', `The sandbox ended: ${stderrTail}`) : undefined
    this.#input = undefined
    this.#output = undefined
    for (const stream of this.#attached) {
      if (!why) stream.push(null)
      stream.destroy(why)
    }
    this.#attached.clear()
    this.#wakeAll()
  }

  #write(from: Duplex, chunk: Buffer, done: (error?: Error | null) => void): void {
    if (from.destroyed) return done(new SandboxError('sandbox_lost', 'The stream to the sandbox is closed'))
    if (!this.#input) {
      this.#waiting.add(() => this.#write(from, chunk, done))
      return
    }
    if (this.#input.write(chunk)) done()
    else this.#waiting.add(() => done())
  }

  #wakeAll(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }

  /** Resumes reading unless a consumer is full, so the slowest sets the pace. */
  #resume(): void {
    for (const stream of this.#attached) if (stream.readableLength >= stream.readableHighWaterMark) return
    this.#output?.resume()
  }
}
