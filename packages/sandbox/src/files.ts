/** File operations in the workspace of a running sandbox. */

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
   * The path without symbolic links to which `path` resolves now, relative to the workspace.
   * Missing components stay as given. Rejects with `path_outside` where a link leads out.
   */
  resolve(path: string): Promise<string>
  /**
   * The same files, for paths from `resolve`: a symbolic link anywhere on the path, created since
   * then, is refused with `path_changed` and never followed. `remove` and `rename` act on a link at
   * the end itself.
   */
  readonly withoutLinks: SandboxFiles
  stat(path: string): Promise<FileStat>
  /**
   * Direct entries of a directory, sorted by path. Rejects with `too_large` beyond 100,000 entries,
   * or 8 MiB of paths: a command can list those.
   */
  list(path: string): Promise<FileStat[]>
  /** Bytes `[offset, offset+length)`, shorter at the end of the file. */
  read(path: string, range?: { offset?: number; length?: number }): Promise<Uint8Array>
  /**
   * Atomic (temporary file, fsync, rename). Creates parent directories and preserves the mode of an
   * existing file.
   */
  write(path: string, data: Uint8Array): Promise<void>
  /** The same for data of any size, in bounded memory. */
  writer(path: string, options?: PlaceOptions): FileWriter
  mkdir(path: string): Promise<void>
  /** Recursively also directories that their owner has made read-only, as tools do with caches. */
  remove(path: string, options?: { recursive?: boolean }): Promise<void>
  rename(from: string, to: string, options?: PlaceOptions): Promise<void>
  /**
   * Records the files of the workspace for a later comparison. Rejects with `too_large` beyond
   * 50,000 files, and with `timeout` when it takes more than two seconds.
   */
  snapshot(): Promise<WorkspaceSnapshot>
  /**
   * Yields those of these directories that any process changed: all of them first, then soon after
   * a change and at most once a second. Not their subdirectories, and only the first 128. One set
   * at a time: another call ends this one, as the signal and the end of the connection do. Rejects
   * with `limit_reached` where the kernel cannot watch.
   */
  watch(paths: readonly string[], signal: AbortSignal): AsyncIterable<readonly string[]>
}

/** Stored by sbxd for this connection, one of at most 16. */
export interface WorkspaceSnapshot {
  /** Number of files. */
  readonly files: number
  /** Directories with a git repository, at most 8; `''` is the workspace. */
  readonly repositories: readonly string[]
  /**
   * Differences since the snapshot, which is discarded. Rejects as `snapshot` does, and with
   * `not_found` when newer ones have replaced it.
   */
  changes(): Promise<WorkspaceChanges>
}

/** Compared by inode, size and time of change of each file, not by content. */
export interface WorkspaceChanges {
  /** Nearest to the top of the workspace first. */
  files: readonly FileChange[]
  /** Number of further ones. */
  more: number
}

export interface FileChange {
  kind: 'created' | 'changed' | 'removed'
  /** Relative to the workspace. */
  path: string
  /** Bytes; for a removed file its former size. */
  size: number
}

/** `isNew`: rejects with `exists` instead of replacing a file. */
export interface PlaceOptions {
  isNew?: boolean
}

/**
 * An unfinished file. It appears at its path when `commit` has resolved; until then it uses one of
 * 32 slots of its sandbox. A rejection aborts it.
 */
export interface FileWriter {
  /** Bytes passed to `write`. */
  readonly written: number
  /** Resolves when more may be written, before the bytes are stored. Calls must not overlap. */
  write(data: Uint8Array): Promise<void>
  /** `data`: the last bytes. */
  commit(data?: Uint8Array): Promise<void>
  /** Discards it. No effect after `commit`. */
  abort(): Promise<void>
}
