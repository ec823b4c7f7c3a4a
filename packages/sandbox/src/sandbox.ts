/**
 * Operations of one running sandbox. Implemented over the sbxd protocol by `client.ts`, the same
 * for every backend.
 */

import type { Duplex } from 'node:stream'

import type { SandboxError } from './errors.ts'
import type { SandboxFiles } from './files.ts'

/**
 * After so many milliseconds without a controller sbxd exits, and every command with it: its own
 * default.
 */
export const LEASE_MS = 600_000

/**
 * 32 lower-case hex digits (128 bits), chosen by the caller. A command runs at most once per id.
 */
export type CommandId = string

export type CommandStream = 'stdout' | 'stderr'

export interface RunRequest extends OutputOptions {
  id: CommandId
  /**
   * The boot for which this request was prepared. A sandbox restarted since then refuses it with
   * `sandbox_lost`, so that a retry after a crash cannot run a command twice. Default: the current
   * boot.
   */
  bootId?: string
  /**
   * Shell text (run by `bash -c`), or an argument vector, whose program is searched along the
   * command's `PATH`. Never interpreted by the controller.
   */
  command: string | readonly string[]
  /** Absolute, or relative to the workspace. Default: the workspace. */
  cwd?: string
  /** Added to the sandbox's own short environment; at most 4,096. */
  env?: Readonly<Record<string, string>>
  /**
   * One pipe for stdout and stderr, hence one output with one offset space (`stdout`). Default
   * false.
   */
  merge?: boolean
  /** Enforced inside, on the monotonic clock. Default: none. */
  timeoutMs?: number
  /** Keeps stdin open for `writeStdin`. Default false: stdin is at its end from the start. */
  stdin?: boolean
  /**
   * After this many bytes of output (at most 131,072), everything from the first byte is also
   * written to `<workspace>/.tool-outputs/<id>.txt`, up to `maxBytes`. Two streams are written in
   * the order of arrival.
   */
  spool?: { afterBytes: number; maxBytes: number }
  /** Default: all output is delivered. */
  policy?: OutputPolicy
  /** Limits for the command and its children, below the sandbox's own; a higher one is refused. */
  limits?: CommandLimits
  /**
   * Runs it in a terminal of this size: its stdin (open for `writeStdin`), stdout, stderr and
   * controlling terminal. All it shows is `stdout`. Keys are bytes: `\x03` interrupts the
   * foreground process.
   */
  terminal?: TerminalSize
  /**
   * A background job: not ended with the command that started it, listed as one, and ended at
   * `maxAgeMs`. At most 16 run at once in a sandbox, else `limit_reached`. With the `cut` policy it
   * never waits for a reader; with `spool` its log can be read while it runs. Default false.
   */
  background?: boolean
  /** Only for a background job: after so long it ends as by a timeout. Default: 24 hours. */
  maxAgeMs?: number
  /**
   * Continues in the directory and with the exported variables of the last command of this name,
   * until the sandbox is reset; also after a stop or with another image. Shell text passes on its
   * changes, except from a background job or when it is stopped by us or a signal; of simultaneous
   * commands the last one to end wins. `cwd` overrides the session's, and `env` is for this command
   * only, unless it changes those variables. 1 to 64 visible ASCII characters.
   */
  session?: string
  /**
   * Initial directory of a session that no command has moved yet; it need not exist. Default: the
   * workspace.
   */
  home?: string
}

/** Delivery of a command's output. */
export interface OutputOptions {
  /**
   * Acknowledges by itself the chunks taken from `output`, and the end of the command. Without it a
   * command stops after 1 MiB of unacknowledged output, and an ended one is stored (of 256) until
   * it is acknowledged. Default false.
   */
  autoAcknowledge?: boolean
  /**
   * Reuses the memory of a chunk when the next one is requested. For very long outputs, which would
   * otherwise keep the garbage collector busy. Default false: each chunk has its own.
   */
  lend?: boolean
}

export interface AttachOptions extends OutputOptions {
  /**
   * Also to a command whose end was acknowledged: `exit` is known for the last 4,096 of a boot,
   * without their output. Default false: those are unknown.
   */
  acknowledged?: boolean
}

/** In characters, each 1 to 65,535. */
export interface TerminalSize {
  columns: number
  rows: number
}

/** Treatment of a command's output. */
export type OutputPolicy =
  /** Every byte is delivered, and a command whose output is not read waits. */
  | { kind: 'stream' }
  /**
   * The first `head` and the last `tail` bytes of each stream are delivered (together at most
   * 262,144), the tail at the end; the rest is only counted, and the command never waits. With
   * `spool` the whole output is stored inside.
   */
  | { kind: 'cut'; head: number; tail: number }
  /**
   * The command is killed with the cause `output_limit` when both streams together exceed `bytes`,
   * which are delivered.
   */
  | { kind: 'limit'; bytes: number }

/** setrlimit(2) for one command; it applies to each of its processes separately. */
interface CommandLimits {
  /** Seconds of processor time; then SIGXCPU, and a second later SIGKILL. */
  cpuSeconds?: number
  /** Maximum size of a file; beyond it SIGXFSZ. */
  fileBytes?: number
  openFiles?: number
  addressSpaceBytes?: number
  /** 0–19; other commands are preferred. */
  nice?: number
}

export interface OutputChunk {
  stream: CommandStream
  /** Raw byte offset of `data[0]` in that stream. Contiguous except for the gap of a cut output. */
  offset: number
  data: Uint8Array
}

export type ExitCause =
  | 'exited'
  | 'signal'
  | 'timeout'
  | 'cancel'
  | 'oom'
  | 'output_limit'
  | 'disk_quota'
  | 'shim_killed'

export interface OutputGap {
  from: number
  to: number
}

export interface CommandExit {
  cause: ExitCause
  /** Exit code, when the main process exited. */
  code?: number
  /** Signal name such as `SIGKILL`, when a signal ended it. */
  signal?: string
  /** Total bytes of each stream, with those that were cut. */
  bytes: Record<CommandStream, number>
  /** SHA-256 of those bytes, hexadecimal. A stream that arrived whole was compared with it. */
  sha256: Record<CommandStream, string>
  /** For a cut output: bytes `from` up to `to` of each stream were counted and discarded. */
  cut?: Partial<Record<CommandStream, OutputGap>>
  userMs: number
  systemMs: number
  maxRssKb: number
  /** From START to the end, measured by sbxd. */
  durationMs: number
  /** Hosts that the egress rules refused, each once. Absent without egress. */
  refusedHosts?: readonly RefusedHost[]
  /** Path of the spooled output inside the sandbox, if it was written. */
  spoolFile?: string
  /**
   * For a command with a session: whether the next one continues where this one stopped. `refused`:
   * its state exceeded a session's maximum (256 KiB, one variable 128 KiB), so the next one begins
   * where this one did.
   */
  session?: 'kept' | 'unchanged' | 'refused'
  /**
   * Processes in the whole sandbox that the kernel killed for lack of memory while it ran: its own,
   * or those of a command next to it. Absent: none, or an older sbxd.
   */
  oomKills?: number
  /**
   * For a stopped command, by a user or a limit: its processes at that moment, all of which have
   * ended, and the time until the last one had. Absent: it ended by itself, or an older sbxd.
   */
  stopped?: { processes: number; tookMs: number }
  /** More resource usage of the main process: getrusage(2). Blocks have 512 bytes. */
  usage?: {
    minorFaults: number
    majorFaults: number
    blocksRead: number
    blocksWritten: number
    voluntarySwitches: number
    involuntarySwitches: number
  }
}

/**
 * One started command. `output` can be iterated once. Unread output, without an iteration or after
 * a loop was left, stops the command by back-pressure, unless its policy is `cut`.
 */
export interface RunningCommand {
  readonly id: CommandId
  /** Boot id of the sbxd that runs it. */
  readonly bootId: string
  readonly output: AsyncIterable<OutputChunk>
  /**
   * Bytes of stdin that sbxd has or that are in flight. After `attach` this is the input that
   * arrived over an earlier connection: continue from there.
   */
  readonly stdinOffset: number
  /**
   * Resolves when all output has arrived here (unread chunks stay in `output`). Rejects with
   * `sandbox_lost` if the sandbox ended.
   */
  readonly exit: Promise<CommandExit>
  writeStdin(data: Uint8Array): Promise<void>
  /** Ends stdin. In a terminal, presses ^D. */
  closeStdin(): Promise<void>
  /** Only for a command in a terminal; otherwise without effect. */
  resize(size: TerminalSize): Promise<void>
  /** True when its session's directory was missing, so that it began in the workspace. */
  readonly moved: boolean
  /**
   * Sends TERM to the group (in a terminal: HUP to all its processes), then, after the grace time,
   * KILL to the whole subtree until it is empty.
   */
  cancel(graceMs?: number): Promise<void>
  signal(name: string, scope?: 'process' | 'group' | 'tree'): Promise<void>
  /**
   * The output up to these offsets is stored and may be discarded inside. With the totals, after
   * `exit` has resolved, the command itself is discarded.
   */
  acknowledge(offsets: Partial<Record<CommandStream, number>>): void
}

/** A command that sbxd lists after a reconnect. */
export interface KnownCommand {
  id: CommandId
  state: 'running' | 'ended'
  background: boolean
  terminal: boolean
}

/**
 * Reasons for a refused or closed connection. Closed list; it is in the audit record and in the
 * event.
 */
export type EgressReason =
  /** A strict HTTP/1.1 proxy cannot parse the request unambiguously. */
  | 'bad_request'
  /** The host is on no list. */
  | 'not_allowed'
  /** A rule of the user or the deployment denies it, whatever the lists allow. */
  | 'denied'
  /** The host is allowed, this port is not. */
  | 'port'
  /** The name resolves to an address that is not public. */
  | 'private_address'
  | 'unresolvable'
  | 'unreachable'
  /** Bytes other than TLS were sent to port 443. */
  | 'not_tls'
  /** TLS was started for another name than the requested one, or for none. */
  | 'other_name'
  | 'too_many_connections'
  | 'byte_budget'
  | 'time_budget'
  /** The request, or the next byte, did not arrive in time. */
  | 'too_slow'
  /** The server's answer was not HTTP, or must not be forwarded. */
  | 'bad_answer'
  /** One of the two ends disconnected in the middle. */
  | 'broken'

/** A host that was refused to a command. */
export interface RefusedHost {
  host: string
  port: number
  reason: EgressReason
}

/**
 * Limits of the workspace. 0 = no limit. Entries are limited too: many tiny files fill a disk as
 * well.
 */
export interface DiskBudget {
  bytes: number
  entries: number
  /** Prevents all growth, whatever the budget; for a host that runs out of disk. Default false. */
  freeze?: boolean
  /**
   * Also prevents growth while the shared file system has less free space than this. Default none.
   */
  hostFloor?: { bytes: number; files: number }
}

/**
 * Usage of the workspace: allocated bytes, deleted files that are still open included, hard links
 * once.
 */
export interface DiskState {
  bytes: number
  entries: number
  budget: DiskBudget
  /** Above the budget: commands start, but one that writes ends with cause `disk_quota`. */
  over: boolean
  /** The controller allows no growth; see `DiskBudget.freeze`. */
  frozen: boolean
  /** The host is short of disk; see `DiskBudget.hostFloor`. */
  hostLow: boolean
  /**
   * `file_system`: the kernel counts and enforces it. `walk`: sbxd visits every file. `nobody`: not
   * counted yet.
   */
  countedBy: 'nobody' | 'walk' | 'file_system'
}

/** Current usage of a sandbox. An unset or unknown `limit` is omitted. */
export interface SandboxStat {
  /** Without reclaimable page cache. */
  memory: { bytes: number; limit?: number }
  processes: { count: number; limit?: number }
  /** CPU time since the sandbox started, runnable processes, running commands. */
  load: { cpuMs: number; runnable: number; commands: number }
  /** /tmp, /run and /dev/shm together; they are memory. */
  scratch: { bytes: number; limit?: number }
  /** `ageMs`: time since the count; omitted when there was none. */
  disk: DiskState & { ageMs?: number }
  /** The workspace's file system: the host's, unless the workspace has its own. */
  fileSystem: { bytes: number; freeBytes: number; files: number; freeFiles: number }
}

/** Programs inside that listen on the loopback interface. */
export interface SandboxPorts {
  /** Sorted. Empty outside of a container. */
  list(): Promise<number[]>
  /**
   * Connects to the one on this port. Rejects with `not_found` where there is none. An open
   * connection counts as use of the sandbox. It may already be destroyed when it is returned.
   */
  connect(port: number): Promise<Duplex>
}

interface Boot {
  readonly bootId: string
  /** Why the boot before this one ended, where that is known. */
  readonly endedBefore?: SandboxError | undefined
}

export interface Sandbox extends Boot {
  /** Container id. */
  readonly id: string
  /** Absolute path of the workspace for commands; `/workspace` in a container. */
  readonly workspace: string
  readonly files: SandboxFiles
  /**
   * Rejects with `SandboxError` when the command could not be started. A known id attaches instead,
   * also to an acknowledged command. An id of a different command is `start_failed`.
   */
  run(request: RunRequest): Promise<RunningCommand>
  /**
   * Attaches to a command of this or an earlier controller, from these offsets. Undefined when this
   * boot does not know the id. Output begins later where it was acknowledged already. The earlier
   * attachment rejects with `fenced`.
   */
  attach(
    id: CommandId,
    from?: Partial<Record<CommandStream, number>>,
    options?: AttachOptions,
  ): Promise<RunningCommand | undefined>
  /** Running commands, and ended ones that were not acknowledged. */
  commands(): Promise<KnownCommand[]>
  readonly ports: SandboxPorts
  /**
   * Kills every process and empties /tmp; the workspace stays. Rejects with `timeout` after a
   * minute.
   */
  reset(): Promise<void>
  /**
   * Current usage, measured by sbxd. Counts the workspace again unless that was done a moment ago.
   * Rejects with `timeout` when its disk hangs.
   */
  stat(): Promise<SandboxStat>
  /**
   * Last state of the workspace that sbxd reported unasked: when it exceeded its budget, and when
   * it was below it again.
   */
  readonly disk: DiskState | undefined
}
