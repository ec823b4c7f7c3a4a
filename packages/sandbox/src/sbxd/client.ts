import type { Duplex } from 'node:stream'

import { readCommandList, handshake, type NewerEpoch, type Welcome } from './handshake.ts'
import { RemoteCommand } from './command.ts'
import { connectPort, EGRESS_PORT, listPorts, openEgress } from './network.ts'
import { RemoteFiles } from './files.ts'
import { Link } from './link.ts'
import { encodeStart, idBytes, sendStart } from './start.ts'
import { encodeBudget, readDiskState, readStat } from './stat.ts'
import type { SandboxProfile } from '../backend.ts'
import type { UserEgress } from '../egress/egress.ts'
import { SandboxError } from '../errors.ts'
import { ByteReader, ByteWriter } from './protocol/bytes.ts'
import { FLAG, FrameType } from './protocol/frames.ts'
import type {
  AttachOptions,
  CommandId,
  CommandStream,
  DiskBudget,
  DiskState,
  KnownCommand,
  OutputOptions,
  RunningCommand,
  RunRequest,
  Sandbox,
  SandboxPorts,
  SandboxStat,
} from '../sandbox.ts'

interface ConnectOptions {
  /** Container id, used as `Sandbox.id`. */
  id: string
  /** Bytes to and from sbxd, unused so far. Destroyed at the end of the connection. */
  stream: Duplex
  /** 32 bytes, see `deriveSandboxKey`. The first connection after boot installs it. */
  key: Uint8Array
  /**
   * 32 bytes, see `deriveStateKey`. Installed with `key`; it seals sessions, which then outlive a
   * stop. Absent: they end with sbxd.
   */
  stateKey?: Uint8Array | undefined
  /** Increases with every controller; one below the highest that sbxd has seen is refused. */
  epoch: number
  /** Default: a sandbox with a greater epoch is another controller's. */
  newerEpoch?: NewerEpoch | undefined
  /** Egress of this sandbox. Default: none. */
  egress?: UserEgress
  /** Cancels only the connecting. */
  signal?: AbortSignal
  /** Time limit of the handshake. Default 10,000. */
  handshakeMs?: number
  /**
   * A connection that is silent for this long is pinged, and closed a little more than twice as
   * long after its last byte; an idle one is pinged less often. 0 = never. Default 2,000.
   */
  heartbeatMs?: number
  /** Milliseconds of our silence after which sbxd closes our connections. Default 120,000. */
  silentMs?: number
  /** Time limit of a reset, whose last step waits for the disk, which may hang. Default 60,000. */
  resetMs?: number
  /** Time limit of STAT, which reads the disk. Default 10,000. */
  statMs?: number
  /**
   * System call filter of its commands. `debug` counts only where the sandbox was created with it.
   * Default `default`.
   */
  profile?: SandboxProfile
  /** Budget of the workspace; sbxd keeps it across reconnects. Default: unchanged. */
  disk?: DiskBudget
  /** See `Sandbox.endedBefore`. */
  endedBefore?: SandboxError | undefined
}

/**
 * A sandbox with a live connection. At its end everything pending rejects; commands keep running.
 */
export interface ConnectedSandbox extends Sandbox {
  /**
   * Closes the stream; commands keep running. Idempotent. Everything pending rejects with `why`;
   * default `cancelled`.
   */
  close(why?: SandboxError): Promise<void>
  /** Last use, on the clock of `performance.now()`; status queries do not count. */
  readonly usedAt: number
  /**
   * True when it may be paused: no command of any controller runs in it, and nothing is in
   * progress. Then nothing is sent until it is used again; `wake` is called just before that, and
   * frames wait in the stream.
   */
  preparePause(wake: () => void): Promise<boolean>
  /** Sets the budget. Resolves with sbxd's state of the disk before the next count. */
  setDiskBudget(budget: DiskBudget): Promise<DiskState>
  /**
   * Routes connections of programs inside to `user`; commands started after this have its
   * environment. Idempotent.
   */
  openEgress(user: UserEgress): Promise<void>
  /** Between a `preparePause` that resolved with true and `wake`. */
  readonly paused: boolean
  /**
   * Resolves at the end of the connection: undefined after `close()`, else the reason:
   * `sandbox_lost`, `protocol`, or `fenced` when another controller has taken over. Never rejects.
   */
  readonly closed: Promise<SandboxError | undefined>
  /**
   * Commands that sbxd listed in the handshake: attach to those you need, acknowledge the others.
   */
  readonly found: readonly KnownCommand[]
}

/**
 * Connects to the sbxd at the other end of `stream`. Rejects with `SandboxError`: `sandbox_lost`,
 * `timeout`, `fenced` (a newer controller exists), `protocol` (wrong key or version), `cancelled`,
 * or the one that ended the stream. The stream is destroyed on failure.
 */
export async function connectSandbox(options: ConnectOptions): Promise<ConnectedSandbox> {
  const { stream, key, stateKey, epoch, signal } = options
  // An error without a listener would end the process; `closed` resolves with it.
  stream.on('error', () => {})
  try {
    if (key.length !== 32 || (stateKey?.length ?? 32) !== 32)
      throw new SandboxError('invalid_arguments', 'The key of a sandbox has 32 bytes')
    const welcome = await handshake(stream, key, epoch, {
      signal,
      stateKey,
      newerEpoch: options.newerEpoch,
      timeoutMs: options.handshakeMs ?? 10_000,
    })
    const sandbox = new RemoteSandbox(
      welcome,
      new Link(stream, welcome, options.heartbeatMs ?? 2_000),
      options,
    )
    // Not awaited: frames stay in order, so it applies to the first command. `closed` reports a
    // lost stream.
    if (options.disk) void Promise.allSettled([sandbox.setDiskBudget(options.disk)])
    if (options.egress) await sandbox.openEgress(options.egress)
    return sandbox
  } catch (error) {
    stream.destroy()
    throw error
  }
}

class RemoteSandbox implements ConnectedSandbox {
  readonly id: string
  readonly bootId: string
  readonly endedBefore: SandboxError | undefined
  readonly workspace: string
  readonly files: RemoteFiles
  readonly ports: SandboxPorts
  readonly found: readonly KnownCommand[]
  readonly #link: Link
  readonly #isInit: boolean
  readonly #mayTrace: boolean
  readonly #silentMs: number | undefined
  readonly #resetMs: number
  readonly #statMs: number
  #disk: DiskState | undefined
  #egress: { user: UserEgress; port: number } | undefined
  #opening: Promise<void> | undefined

  constructor(
    welcome: Welcome,
    link: Link,
    {
      id,
      silentMs,
      resetMs,
      statMs,
      profile,
      endedBefore,
    }: Pick<ConnectOptions, 'id' | 'silentMs' | 'resetMs' | 'statMs' | 'profile' | 'endedBefore'>,
  ) {
    this.id = id
    this.bootId = welcome.bootId
    this.endedBefore = endedBefore
    this.workspace = welcome.workspace
    this.found = welcome.commands
    this.files = new RemoteFiles(link, welcome.workspace)
    this.ports = {
      list: async () => (await listPorts(link)).filter((port) => port !== this.#egress?.port),
      connect: (port) => connectPort(link, port),
    }
    this.#link = link
    this.#isInit = welcome.isInit
    this.#mayTrace = welcome.mayTrace && profile === 'debug'
    this.#silentMs = silentMs
    this.#resetMs = resetMs ?? 60_000
    this.#statMs = statMs ?? 10_000
    link.onDiskState = (payload) => this.#diskState(payload)
  }

  get closed(): Promise<SandboxError | undefined> {
    return this.#link.closed
  }

  async openEgress(user: UserEgress): Promise<void> {
    if (this.#egress?.user === user) return
    this.#opening ??= this.#listenFor(user).finally(() => {
      this.#opening = undefined
    })
    await this.#opening
  }

  async #listenFor(user: UserEgress): Promise<void> {
    // Without its own network namespace a sandbox could not listen on the usual port twice.
    const port = await openEgress(this.#link, user, this.#isInit ? EGRESS_PORT : 0, this.#silentMs)
    this.#egress = { user, port }
  }

  async run(asked: RunRequest): Promise<RunningCommand> {
    this.#link.check()
    const proxy = this.#egress?.user.environment(asked.id, this.#egress.port)
    const request = proxy ? { ...asked, env: { ...proxy, ...asked.env } } : asked
    const program = typeof request.command === 'string' ? '/bin/bash' : (request.command[0] ?? '')
    const command = this.#command(request.id, request, program, request.cwd)
    try {
      sendStart(
        this.#link,
        command.channel,
        encodeStart(request, request.bootId ?? this.bootId, command.grant({}), this.#mayTrace),
      )
    } catch (error) {
      this.#link.release(command.channel)
      throw error
    }
    return (await command.started) ?? notStarted()
  }

  async attach(
    id: CommandId,
    from: Partial<Record<CommandStream, number>> = {},
    options: AttachOptions = {},
  ): Promise<RunningCommand | undefined> {
    this.#link.check()
    const bytes = idBytes(id)
    const command = this.#command(id, options, '', undefined)
    const limits = command.grant(from)
    const payload = new ByteWriter()
      .bytes(bytes)
      .u64(from.stdout ?? 0)
      .u64(from.stderr ?? 0)
      .u64(limits.stdout)
      .u64(limits.stderr)
    const flags = options.acknowledged === true ? FLAG.ACKNOWLEDGED : 0
    this.#link.send(FrameType.ATTACH, flags, command.channel, payload.done())
    return command.started
  }

  async commands(): Promise<KnownCommand[]> {
    const { type, payload } = await this.#link.request(FrameType.COMMANDS)
    if (type !== FrameType.COMMAND_LIST)
      throw new SandboxError('protocol', 'sbxd answered COMMANDS with something else')
    return readCommandList(new ByteReader(payload))
  }

  async reset(): Promise<void> {
    const { type } = await this.#link.request(FrameType.RESET, 0, undefined, this.#resetMs)
    if (type !== FrameType.RESET_DONE)
      throw new SandboxError('protocol', 'sbxd answered RESET with something else')
  }

  async stat(): Promise<SandboxStat> {
    const { type, payload } = await this.#link.request(FrameType.STAT, 0, undefined, this.#statMs)
    if (type !== FrameType.STAT_RESULT)
      throw new SandboxError('protocol', 'sbxd answered STAT with something else')
    return readStat(new ByteReader(payload))
  }

  get disk(): DiskState | undefined {
    return this.#disk
  }

  async setDiskBudget(budget: DiskBudget): Promise<DiskState> {
    const { type, payload } = await this.#link.request(
      FrameType.DISK_BUDGET,
      budget.freeze === true ? FLAG.FREEZE : 0,
      encodeBudget(budget),
    )
    if (type !== FrameType.DISK_STATE)
      throw new SandboxError('protocol', 'sbxd answered DISK_BUDGET with something else')
    return this.#diskState(payload)
  }

  #diskState(payload: Buffer): DiskState {
    this.#disk = readDiskState(new ByteReader(payload))
    return this.#disk
  }

  async close(why?: SandboxError): Promise<void> {
    this.#link.close(why)
  }

  get usedAt(): number {
    return this.#link.usedAt
  }

  get paused(): boolean {
    return this.#link.paused
  }

  async preparePause(wake: () => void): Promise<boolean> {
    if (this.#link.busy) return false
    const known = await this.commands()
    if (known.some(({ state }) => state === 'running') || this.#link.busy) return false
    return this.#link.preparePause(wake)
  }

  #command(id: string, options: OutputOptions, program: string, cwd: string | undefined): RemoteCommand {
    const egress = this.#egress?.user
    const command = new RemoteCommand(this.#link, {
      id,
      bootId: this.bootId,
      workspace: this.workspace,
      autoAcknowledge: options.autoAcknowledge ?? false,
      lend: options.lend ?? false,
      program,
      cwd,
      ...(egress ? { refusedHosts: () => egress.ended(id) } : {}),
    })
    if (egress) attribute(egress, command)
    return command
  }
}

/** While this command runs, connections are attributed to it. */
function attribute(egress: UserEgress, command: RemoteCommand): void {
  const over = (): void => void egress.ended(command.id)
  egress.began(command.id)
  command.started.then((running) => (running ? undefined : over()), over)
  command.exit.then(over, over)
}

function notStarted(): never {
  throw new SandboxError('protocol', 'sbxd does not know the command that it was to start')
}
