/**
 * What you can do in one running sandbox. Implemented over the sbxd protocol by `client.ts`, the
 * same for every backend.
 */

import type { Duplex } from 'node:stream'

/**
 * Without a controller for so many milliseconds sbxd ends, and with it every command: its own
 * default.
 */
export const LEASE_MS = 600_000

/**
 * A command's id: 32 lower-case hex digits (128 bits). Chosen by the caller; a command runs at most
 * once per id.
 */
export type CommandId = string

export type CommandStream = 'stdout' | 'stderr'

export interface RunRequest extends OutputOptions {
  id: CommandId
  /**
   * The boot that this request was prepared for. A sandbox that was restarted meanwhile refuses it
   * with `sandbox_lost`, so that a retry after a crash cannot run a command twice. Default: the
   * current boot.
   */
  bootId?: string
  /**
   * Shell text (run by `bash -c`), or an argument vector, whose program is looked for along the
   * `PATH` that it gets. Never interpreted by the controller.
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
  /** Leave stdin open for `writeStdin`. Default false: stdin is at its end from the start. */
  stdin?: boolean
  /**
   * After this many bytes of output, everything (from the first byte) is also written to
   * `<workspace>/.tool-outputs/<id>.txt`, up to `maxBytes`. `afterBytes` is at most 131,072. Two
   * streams are written in the order of arrival.
   */
  spool?: { afterBytes: number; maxBytes: number }
  /** What becomes of the output on its way here. Default: all of it comes. */
  policy?: OutputPolicy
  /**
   * Lower limits than the sandbox's own for the command and its children; a higher one is refused.
   */
  limits?: CommandLimits
  /**
   * Run it in a terminal of this size: its stdin (open for `writeStdin`), stdout and stderr, and
   * its controlling terminal. Everything that it shows is `stdout`. Keys are bytes: `\x03`
   * interrupts what runs in the foreground.
   */
  terminal?: TerminalSize
  /**
   * A job of its own: not ended with the command that started it, listed as one, and ended at
   * `maxAgeMs`. At most 16 run at once in a sandbox, else `limit_reached`. With the `cut` policy it
   * never waits for a reader; with `spool` its log can be read while it runs. Default false.
   */
  background?: boolean
  /**
   * Only for a background job: it ends as by a timeout when it has run this long. Default: 24
   * hours.
   */
  maxAgeMs?: number
  /**
   * Go on where the last command of this name stopped: in its directory and with its exported
   * variables, until the sandbox is reset; a stop and another image do not end it. Shell text hands
   * on what it changes, except from a background job or when it is ended by us or by a signal; of
   * commands that run at once the last one to end wins. `cwd` comes before the session's, and the
   * variables of `env` are for this command only, unless it changes them. 1 to 64 visible ASCII
   * characters.
   */
  session?: string
  /**
   * Where a session begins that no command has moved yet; it need not be there. Default: the
   * workspace.
   */
  home?: string
}

/** How the output of a command is taken. */
export interface OutputOptions {
  /**
   * Acknowledge on its own what was taken from `output`, and the end of the command. Without it a
   * command stops after 1 MiB of unacknowledged output, and an ended one is kept (of 256) until it
   * is. Default false.
   */
  autoAcknowledge?: boolean
  /**
   * The bytes of a chunk are lent: they are good until the next chunk is asked for, then their
   * memory is used again. For very long outputs, which would keep the garbage collector busy
   * otherwise. Default false: each chunk has its own.
   */
  lend?: boolean
}

export interface AttachOptions extends OutputOptions {
  /**
   * Also to a command whose end was acknowledged: of the last 4,096 of a boot `exit` is known.
   * Their output is gone, so that it begins at its end. Default false: those are unknown.
   */
  acknowledged?: boolean
}

/** In characters, each 1 to 65,535. */
export interface TerminalSize {
  columns: number
  rows: number
}

/** What becomes of a command's output. */
export type OutputPolicy =
  /** Every byte comes, and a command whose output is not taken waits. */
  | { kind: 'stream' }
  /**
   * Of each stream the first `head` and the last `tail` bytes come (together at most 262,144), the
   * rest is only counted; the command never waits. The tail comes when the command has ended. With
   * `spool` the whole output is kept inside.
   */
  | { kind: 'cut'; head: number; tail: number }
  /**
   * The command is killed with the cause `output_limit` when both streams together exceed `bytes`;
   * those come.
   */
  | { kind: 'limit'; bytes: number }

/** setrlimit(2) for one command; each process of it has these for itself. */
interface CommandLimits {
  /** Seconds of processor time; at the limit SIGXCPU, a second later SIGKILL. */
  cpuSeconds?: number
  /** Bytes that a file may grow to; beyond it SIGXFSZ. */
  fileBytes?: number
  openFiles?: number
  addressSpaceBytes?: number
  /** 0–19: how far other commands go first. */
  nice?: number
}

export interface OutputChunk {
  stream: CommandStream
  /**
   * Raw byte offset of `data[0]` in that stream. Dense but for the gap of a cut output: the next
   * chunk begins where this one ends.
   */
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
  /** Total bytes each stream produced, those that were cut included. */
  bytes: Record<CommandStream, number>
  /** SHA-256 of them, hexadecimal. A stream that arrived whole was compared with it. */
  sha256: Record<CommandStream, string>
  /**
   * Of a cut output: the bytes from `from` up to `to` of these streams were counted and not kept.
   */
  cut?: Partial<Record<CommandStream, OutputGap>>
  userMs: number
  systemMs: number
  maxRssKb: number
  /** From START to the end, measured inside. */
  durationMs: number
  /**
   * Hosts that it asked for and that the rules of egress refused, each once. Absent without egress.
   */
  refusedHosts?: readonly RefusedHost[]
  /** Path inside the sandbox of the spooled output, if it was written. */
  spoolFile?: string
  /**
   * Of a command with a session: whether the next one goes on where this one stopped. `refused`:
   * what it left was more than a session may hold (256 KiB, one variable 128 KiB), so the next one
   * begins where this one did.
   */
  session?: 'kept' | 'unchanged' | 'refused'
  /**
   * Processes that the kernel killed for want of memory while it ran, in the whole sandbox: its
   * own, or those of a command beside it. Absent: none, or an older sbxd.
   */
  oomKills?: number
  /**
   * Where something stopped it, a person or a limit: its processes at that moment, all of which
   * have ended, and the time until the last one had. Absent: it ended by itself, or an older sbxd.
   */
  stopped?: { processes: number; tookMs: number }
  /** More of what the main process used: getrusage(2). Blocks have 512 bytes. */
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
 * One started command. `output` may be iterated once. Output that is not taken, without an
 * iteration or after a loop was left, stops the command by back-pressure, unless its policy is
 * `cut`.
 */
export interface RunningCommand {
  readonly id: CommandId
  /** Boot id of the sbxd that runs it. */
  readonly bootId: string
  readonly output: AsyncIterable<OutputChunk>
  /**
   * Bytes of stdin that sbxd has or that are on their way to it. After `attach` this is what
   * arrived of an earlier connection's input: go on from there.
   */
  readonly stdinOffset: number
  /**
   * Resolves after all output has arrived here (what is not iterated yet stays in `output`).
   * Rejects with `SandboxError` `sandbox_lost` if the sandbox went away.
   */
  readonly exit: Promise<CommandExit>
  writeStdin(data: Uint8Array): Promise<void>
  /** The end of stdin. In a terminal, the key that says so (^D) is pressed. */
  closeStdin(): Promise<void>
  /** Of a command in a terminal; of any other it does nothing. */
  resize(size: TerminalSize): Promise<void>
  /** True when the directory of its session was gone, so that it began in the workspace. */
  readonly moved: boolean
  /**
   * TERM to the group (in a terminal: HUP to all that runs in it), then, after the grace time, KILL
   * to the whole subtree until it is empty.
   */
  cancel(graceMs?: number): Promise<void>
  signal(name: string, scope?: 'process' | 'group' | 'tree'): Promise<void>
  /**
   * The output up to these offsets is stored and may be forgotten inside. After `exit` has resolved
   * and this was called with the totals, the command itself is forgotten.
   */
  acknowledge(offsets: Partial<Record<CommandStream, number>>): void
}

/** What sbxd knows about a command after a reconnect. */
export interface KnownCommand {
  id: CommandId
  state: 'running' | 'ended'
  background: boolean
  terminal: boolean
}

/**
 * Why a connection was not made, or was ended. Closed list; it is in the audit record and in the
 * event.
 */
export type EgressReason =
  /** The request is not one that a strict HTTP/1.1 proxy can read in one way only. */
  | 'bad_request'
  /** The host is on no list. */
  | 'not_allowed'
  /** A rule of the user's or of the deployment denies it, whatever the lists say. */
  | 'denied'
  /** The host is allowed, this port is not. */
  | 'port'
  /** The name leads to an address that is not on the public internet. */
  | 'private_address'
  | 'unresolvable'
  | 'unreachable'
  /** Something else than TLS was said to port 443. */
  | 'not_tls'
  /** TLS was begun for another name than the one that was asked for, or for none. */
  | 'other_name'
  | 'too_many_connections'
  | 'byte_budget'
  | 'time_budget'
  /** The request, or any byte for too long, did not come. */
  | 'too_slow'
  /** The server answered with something that is not HTTP or not passed on. */
  | 'bad_answer'
  /** One of the two ends went away in the middle. */
  | 'broken'

/** A host that a command asked for and did not get. */
export interface RefusedHost {
  host: string
  port: number
  reason: EgressReason
}

export type FileKind = 'file' | 'directory' | 'symlink' | 'other'

export interface FileStat {
  /** Relative to the workspace, `/`-separated, `''` for the workspace itself. */
  path: string
  kind: FileKind
  size: number
  /** Epoch milliseconds; 0 for a date before 1970. */
  modifiedAt: number
  mode: number
}

/**
 * File operations, confined to the workspace by the kernel (openat2 RESOLVE_BENEATH). Regular files
 * only.
 */
export interface SandboxFiles {
  /**
   * The path without a symbolic link that `path` leads to now, relative to the workspace. What does
   * not exist yet stands in it as it was given. Rejects with `path_outside` where a link leads out.
   */
  resolve(path: string): Promise<string>
  /**
   * The same files for paths that `resolve` gave: a symbolic link anywhere on the way, put there
   * since, is refused with `path_changed` and never followed. `remove` and `rename` take a link at
   * the end for itself.
   */
  readonly withoutLinks: SandboxFiles
  stat(path: string): Promise<FileStat>
  /**
   * What is directly in a directory, by path. Beyond 100,000 entries, or 8 MiB of paths, it rejects
   * with `too_large`: a command can list those.
   */
  list(path: string): Promise<FileStat[]>
  /** Bytes `[offset, offset+length)`, shorter at the end of the file. */
  read(path: string, range?: { offset?: number; length?: number }): Promise<Uint8Array>
  /**
   * Atomic (temporary file, fsync, rename); makes parent directories; keeps an existing file's
   * mode.
   */
  write(path: string, data: Uint8Array): Promise<void>
  /** The same for data of any size, in bounded memory. */
  writer(path: string, options?: PlaceOptions): FileWriter
  mkdir(path: string): Promise<void>
  /** Recursively also what its owner has closed to writing, as tools leave their caches. */
  remove(path: string, options?: { recursive?: boolean }): Promise<void>
  rename(from: string, to: string, options?: PlaceOptions): Promise<void>
  /**
   * What the workspace holds now, to learn later what has changed. Rejects with `too_large` beyond
   * 50,000 files, and with `timeout` where looking at them takes more than two seconds.
   */
  snapshot(): Promise<WorkspaceSnapshot>
  /**
   * Those of these directories in which something changed, by any process: all of them first,
   * then soon after a change and at most once a second. Not what is below them, and of more than
   * 128 only the first. One set at a time: another ends this one, as the signal and the end of the
   * connection do. Rejects with `limit_reached` where the kernel cannot tell.
   */
  watch(paths: readonly string[], signal: AbortSignal): AsyncIterable<readonly string[]>
}

/** Kept by sbxd for this connection, as one of at most 16. */
export interface WorkspaceSnapshot {
  /** Files that were there. */
  readonly files: number
  /** Directories with a git repository, at most 8; `''` is the workspace. */
  readonly repositories: readonly string[]
  /**
   * What is different now. Once: the snapshot is forgotten. Rejects as `snapshot` does, and with
   * `not_found` when newer ones took its place.
   */
  changes(): Promise<WorkspaceChanges>
}

/** By inode, size and time of change of each file; the contents are not read. */
export interface WorkspaceChanges {
  /** Those nearest to the top of the workspace first. */
  files: readonly FileChange[]
  /** How many more there are. */
  more: number
}

export interface FileChange {
  kind: 'created' | 'changed' | 'removed'
  /** Relative to the workspace. */
  path: string
  /** Bytes; of a removed file those that it had. */
  size: number
}

/** `isNew`: rejects with `exists` where something is, in place of replacing it. */
export interface PlaceOptions {
  isNew?: boolean
}

/**
 * A file that is being written. It is not at its path before `commit` has resolved; until then it
 * takes one of 32 places in its sandbox. After a rejection it is given up.
 */
export interface FileWriter {
  /** Bytes that were given to `write`. */
  readonly written: number
  /** Resolves when more may come: sooner than the bytes are stored. One call after the other. */
  write(data: Uint8Array): Promise<void>
  /** `data`: the last bytes. */
  commit(data?: Uint8Array): Promise<void>
  /** Nothing stays. Does nothing after `commit`. */
  abort(): Promise<void>
}

/**
 * What the workspace may hold. 0 = no limit. Names count, not only their bytes: many tiny files
 * fill a disk too.
 */
export interface DiskBudget {
  bytes: number
  entries: number
  /** Nothing may grow, whatever the budget; for a host that runs out of disk. Default false. */
  freeze?: boolean
  /**
   * Nothing may grow either while the file system that all share has less left than this. Default
   * none.
   */
  hostFloor?: { bytes: number; files: number }
}

/**
 * How full the workspace is. Allocated bytes, deleted files that are still open included, hard
 * links once.
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
   * `file_system`: the kernel counts and is a wall. `walk`: sbxd looks at every file. `nobody`: not
   * counted yet.
   */
  countedBy: 'nobody' | 'walk' | 'file_system'
}

/** What a sandbox uses now. An unset or unknown `limit` is omitted. */
export interface SandboxStat {
  /** Without page cache that could be given back. */
  memory: { bytes: number; limit?: number }
  processes: { count: number; limit?: number }
  /**
   * CPU time since the sandbox started, processes that run or wait for a CPU, commands under way.
   */
  load: { cpuMs: number; runnable: number; commands: number }
  /** /tmp, /run and /dev/shm together; they are memory. */
  scratch: { bytes: number; limit?: number }
  /** `ageMs`: when it was counted; left out when it never was. */
  disk: DiskState & { ageMs?: number }
  /** The file system that the workspace is on: the host's, unless the workspace has its own. */
  fileSystem: { bytes: number; freeBytes: number; files: number; freeFiles: number }
}

export interface Sandbox {
  /** Container id. */
  readonly id: string
  readonly bootId: string
  /** Absolute path of the workspace as commands see it; `/workspace` in a container. */
  readonly workspace: string
  readonly files: SandboxFiles
  /**
   * Rejects with `SandboxError` when the command could not be started; the same id again attaches
   * instead, also to one that was acknowledged. An id that stands for another command is
   * `start_failed`.
   */
  run(request: RunRequest): Promise<RunningCommand>
  /**
   * Attach to a command that this or an earlier controller started, from these offsets. Undefined
   * when this boot does not know the id. Output begins later than asked for where that was
   * acknowledged already. The earlier attachment rejects with `fenced`.
   */
  attach(
    id: CommandId,
    from?: Partial<Record<CommandStream, number>>,
    options?: AttachOptions,
  ): Promise<RunningCommand | undefined>
  /** Running commands and ended ones that were not acknowledged. */
  commands(): Promise<KnownCommand[]>
  /**
   * A connection to a program that listens on this port of the loopback interface inside. Rejects
   * with `not_found` where none does. While one is open, the sandbox is in use. It may be destroyed
   * already when it is there.
   */
  connect(port: number): Promise<Duplex>
  /** The ports on which programs inside listen, in their order. Empty outside of a container. */
  ports(): Promise<number[]>
  /**
   * Kill every process and empty /tmp; the workspace stays. Rejects with `timeout` when that has
   * not ended within a minute.
   */
  reset(): Promise<void>
  /**
   * What it uses now, told by sbxd itself. Counts the workspace afresh unless that was done a
   * moment ago. Rejects with `timeout` when its disk hangs.
   */
  stat(): Promise<SandboxStat>
  /**
   * The last that sbxd said about the workspace on its own: when it passed its budget, and when it
   * was below it again.
   */
  readonly disk: DiskState | undefined
}
