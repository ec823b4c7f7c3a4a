import { SandboxError } from '../errors.ts'
import { ByteReader, ByteWriter } from './protocol/bytes.ts'
import { FLAG, FrameType, STREAM } from './protocol/frames.ts'
import type {
  CommandExit,
  CommandStream,
  OutputChunk,
  RefusedHost,
  RunningCommand,
  TerminalSize,
} from '../sandbox.ts'
import { startError } from './errno.ts'
import { readExit } from './exit.ts'
import type { Channel, Link } from './link.ts'
import { OutputQueue } from './output.ts'
import { ReceivedStream } from './received.ts'
import { signalNumber } from './signals.ts'
import { terminalSize } from './start.ts'
import { StdinWriter } from './stdin.ts'

/**
 * Bytes of one stream that may be in flight or buffered here: initially, and at most. Every grant
 * wakes each process on the path, so a consumer that keeps up with a long output gets larger
 * grants.
 */
const FIRST_CREDIT_BYTES = 512 * 1024
const MOST_CREDIT_BYTES = 1_536 * 1024

/** A flag of STARTED. */
const STARTED_MOVED = 2
const SCOPE = { process: 0, group: 1, tree: 2 } as const

interface CommandOptions {
  id: string
  bootId: string
  /** Acknowledges consumed output by itself. */
  autoAcknowledge: boolean
  /** See `OutputOptions`. */
  lend: boolean
  /** For messages. */
  program: string
  cwd?: string | undefined
  workspace: string
  /** Called once, at the end. */
  refusedHosts?: () => readonly RefusedHost[]
}

/** One command on one connection: the client's half of the protocol's commands. */
export class RemoteCommand implements RunningCommand, Channel {
  readonly id: string
  readonly bootId: string
  readonly exit: Promise<CommandExit>
  /** Resolves at STARTED, rejects at START_FAILED; undefined for an ATTACH to an unknown id. */
  readonly started: Promise<RemoteCommand | undefined>
  readonly #link: Link
  readonly #channel: number
  readonly #options: CommandOptions
  readonly #output: OutputQueue
  readonly #stdin: StdinWriter
  readonly #streams: Record<CommandStream, ReceivedStream> = {
    stdout: new ReceivedStream(),
    stderr: new ReceivedStream(),
  }
  readonly #settleStart = Promise.withResolvers<RemoteCommand | undefined>()
  readonly #settleExit = Promise.withResolvers<CommandExit>()
  #hasStarted = false
  #moved = false
  #credit = FIRST_CREDIT_BYTES
  #exit: CommandExit | undefined
  #over = false

  constructor(link: Link, options: CommandOptions) {
    this.id = options.id
    this.bootId = options.bootId
    this.#link = link
    this.#options = options
    this.#channel = link.open(this)
    this.#output = new OutputQueue((stream, upto) => this.#taken(stream, upto), options.lend)
    this.#stdin = new StdinWriter(link, this.#channel)
    this.started = this.#settleStart.promise
    this.exit = this.#settleExit.promise
    // A rejection without a handler would end the process.
    this.exit.catch(() => {})
    this.started.catch(() => {})
  }

  get channel(): number {
    return this.#channel
  }

  get output(): AsyncIterable<OutputChunk> {
    return this.#output
  }

  get stdinOffset(): number {
    return this.#stdin.offset
  }

  writeStdin(data: Uint8Array): Promise<void> {
    return this.#stdin.write(data)
  }

  closeStdin(): Promise<void> {
    return this.#stdin.close()
  }

  get moved(): boolean {
    return this.#moved
  }

  async resize(size: TerminalSize): Promise<void> {
    const payload = terminalSize(size).done()
    if (this.#over) return
    this.#link.check()
    this.#link.send(FrameType.RESIZE, 0, this.#channel, payload)
  }

  async cancel(graceMs = 1_000): Promise<void> {
    if (this.#over) return
    this.#link.check()
    this.#link.send(
      FrameType.CANCEL,
      0,
      this.#channel,
      new ByteWriter().u32(Math.min(Math.max(0, Math.trunc(graceMs)), 600_000)).done(),
    )
  }

  async signal(name: string, scope: 'process' | 'group' | 'tree' = 'group'): Promise<void> {
    const number = signalNumber(name)
    if (number === undefined)
      throw new SandboxError('invalid_arguments', `There is no signal "${name}"; write for example SIGINT`)
    if (this.#over) return
    this.#link.check()
    this.#link.send(FrameType.SIGNAL, 0, this.#channel, new ByteWriter().u32(number).u8(SCOPE[scope]).done())
  }

  acknowledge(offsets: Partial<Record<CommandStream, number>>): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      const state = this.#streams[stream]
      state.acknowledged = Math.max(state.acknowledged, Math.min(offsets[stream] ?? 0, state.received))
    }
    const { stdout, stderr } = this.#streams
    const all =
      this.#over &&
      this.#exit?.bytes.stdout === stdout.acknowledged &&
      this.#exit.bytes.stderr === stderr.acknowledged
    const payload = new ByteWriter().u64(stdout.acknowledged).u64(stderr.acknowledged).done()
    this.#link.send(FrameType.ACK, all ? FLAG.EXIT : 0, this.#channel, payload)
    if (all) this.#link.release(this.#channel)
  }

  frame(type: number, _flags: number, payload: Buffer): void {
    const reader = new ByteReader(payload)
    switch (type) {
      case FrameType.STARTED:
        return this.#onStarted(reader)
      case FrameType.START_FAILED:
        return this.#onFailed(reader.u32(), reader.u32())
      case FrameType.CREDIT:
        return this.#stdin.credit(reader.u64())
      case FrameType.EXIT:
        if (!this.#hasStarted || this.#exit)
          throw new SandboxError('protocol', 'sbxd ended a command twice or before its start')
        return this.#onExit(readExit(reader, this.id, this.#options.workspace))
      case FrameType.DETACHED:
        return this.lost(new SandboxError('fenced', 'This command was attached to again'))
      default:
        throw new SandboxError('protocol', `sbxd sent a frame of type ${type} for a command`)
    }
  }

  data(flags: number, offset: number, bytes: Buffer): void {
    const stream = flags === STREAM.stdout ? 'stdout' : flags === STREAM.stderr ? 'stderr' : undefined
    const state = stream && this.#streams[stream]
    if (!state || !this.#hasStarted)
      throw new SandboxError('protocol', 'sbxd sent output that was not asked for')
    state.take(offset, bytes)
    if (this.#exit && state.received > this.#exit.bytes[stream])
      throw new SandboxError('protocol', 'sbxd sent more output than it counted')
    this.#output.push(stream, offset, bytes)
    this.#maybeFinish()
  }

  lost(error: SandboxError): void {
    this.#link.release(this.#channel)
    this.#settleStart.reject(error)
    if (this.#over) return
    this.#over = true
    this.#stdin.end(() => error)
    this.#output.end(error)
    this.#settleExit.reject(error)
  }

  /** Initial limits for START or ATTACH. */
  grant(from: Partial<Record<CommandStream, number>>): Record<CommandStream, number> {
    for (const stream of ['stdout', 'stderr'] as const)
      this.#streams[stream].limit = (from[stream] ?? 0) + this.#credit
    return { stdout: this.#streams.stdout.limit, stderr: this.#streams.stderr.limit }
  }

  #onStarted(reader: ByteReader): void {
    if (this.#hasStarted) throw new SandboxError('protocol', 'sbxd started a command twice')
    this.#hasStarted = true
    this.#moved = (reader.u8() & STARTED_MOVED) !== 0
    reader.u32()
    for (const stream of ['stdout', 'stderr'] as const) {
      // Later than requested when an earlier controller has acknowledged more.
      this.#streams[stream].begin(reader.u64())
    }
    this.#stdin.begin(reader.u64(), reader.u64())
    this.#grantMore()
    this.#settleStart.resolve(this)
  }

  #onExit(exit: CommandExit): void {
    this.#exit = exit
    for (const stream of ['stdout', 'stderr'] as const) {
      const gap = exit.cut?.[stream]
      if (gap) this.#streams[stream].skip(gap, exit.bytes[stream])
    }
    if (exit.cut) this.#sendCredit()
    this.#maybeFinish()
  }

  #onFailed(errno: number, stage: number): void {
    const ENOENT = 2
    const ATTACH = 8
    if (this.#hasStarted) throw new SandboxError('protocol', 'sbxd failed a command that it had started')
    this.#link.release(this.#channel)
    this.#over = true
    if (stage === ATTACH && errno === ENOENT) this.#settleStart.resolve(undefined)
    else this.#settleStart.reject(startError(errno, stage, this.#options))
  }

  #taken(stream: CommandStream, upto: number): void {
    const state = this.#streams[stream]
    state.done(upto)
    if (this.#options.autoAcknowledge && this.#over)
      this.acknowledge({ stdout: this.#streams.stdout.taken, stderr: this.#streams.stderr.taken })
    if (state.taken + this.#credit - state.limit < this.#credit / 2) return
    if (state.taken >= 4 * this.#credit) this.#credit = Math.min(2 * this.#credit, MOST_CREDIT_BYTES)
    this.#grantMore()
  }

  #grantMore(): void {
    if (this.#over) return
    const { stdout, stderr } = this.#streams
    const before = stdout.limit + stderr.limit
    stdout.limit = Math.max(stdout.limit, stdout.taken + this.#credit)
    stderr.limit = Math.max(stderr.limit, stderr.taken + this.#credit)
    if (this.#options.autoAcknowledge && stdout.taken + stderr.taken > 0)
      this.acknowledge({ stdout: stdout.taken, stderr: stderr.taken })
    if (stdout.limit + stderr.limit !== before) this.#sendCredit()
  }

  #sendCredit(): void {
    const { stdout, stderr } = this.#streams
    this.#link.send(
      FrameType.CREDIT,
      0,
      this.#channel,
      new ByteWriter().u64(stdout.limit).u64(stderr.limit).done(),
    )
  }

  #maybeFinish(): void {
    const exit = this.#exit
    if (!exit || this.#over) return
    const { stdout, stderr } = this.#streams
    if (exit.bytes.stdout < stdout.received || exit.bytes.stderr < stderr.received) {
      throw new SandboxError('protocol', 'sbxd counted less output than it sent')
    }
    if (exit.bytes.stdout > stdout.received || exit.bytes.stderr > stderr.received) return
    for (const stream of ['stdout', 'stderr'] as const)
      if (!this.#streams[stream].matches(exit.sha256[stream]))
        throw new SandboxError('protocol', `The ${stream} that arrived is not what the command printed`)
    this.#over = true
    this.#stdin.end(tooLate)
    this.#output.end()
    const refusedHosts = this.#options.refusedHosts?.()
    this.#settleExit.resolve(refusedHosts ? { ...exit, refusedHosts } : exit)
    if (this.#options.autoAcknowledge) this.acknowledge({ stdout: stdout.taken, stderr: stderr.taken })
  }
}

function tooLate(): SandboxError {
  return new SandboxError('cancelled', 'The command has ended and reads no more input')
}
