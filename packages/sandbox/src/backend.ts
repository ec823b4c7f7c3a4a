import type { Duplex } from 'node:stream'

/** What one machine that runs sandboxes can do. Probed once, shown by doctor and `/readyz`. */
export interface BackendCapabilities {
  /** Name as in `SANDLOT_SANDBOX`, for example `docker`. */
  name: string
  /** False for `local-process`: it isolates nothing and must say so wherever it is shown. */
  isolates: boolean
  /** Engine version, for people. */
  version: string
  apiVersion?: string
  runtimes: string[]
  cgroup: 'v1' | 'v2' | 'none'
  /** Whether a disk budget is a wall (`hard`) or watched (`soft`). */
  quota: 'hard' | 'soft' | 'none'
  pause: boolean
  /** What an operator should know, one plain sentence each. */
  warnings: string[]
}

/** `open`: it does not answer and calls fail at once; `half-open`: the same, and it is being asked again just now. */
export type BackendHealth =
  | { state: 'closed'; running: number; inLine: number }
  /** `since` in epoch milliseconds; `reason` is a sentence for people. */
  | { state: 'open' | 'half-open'; since: number; reason: string }

/** Limits of one sandbox. Bytes, processes, CPUs (fractions allowed). */
export interface SandboxLimits {
  memoryBytes: number
  cpus: number
  pids: number
  tmpBytes: number
  /** Largest single file and, where the backend can, the volume's budget. */
  diskBytes: number
  /** Names in the workspace: files, directories, links. Default 500,000. */
  diskEntries?: number
  openFiles: number
}

/** The system call filter of a sandbox. `debug`: as `default`, and programs may trace others of the same sandbox. */
export type SandboxProfile = 'default' | 'debug'

/** Everything needed to make one sandbox. Two equal specs make interchangeable sandboxes. */
export interface SandboxSpec {
  /** Container name, never used twice: `sbx-<deployment>-<slot>-<owner>-<n>`. */
  name: string
  /** The slot: `[a-z0-9]{8}`. A slot has one uid and one volume for ever. */
  slot: string
  /** 30000–59999. */
  uid: number
  volume: string
  /** Image id or reference. */
  image: string
  limits: SandboxLimits
  /** OCI runtime, or undefined for the engine's default. */
  runtime?: string
  /** Default `default`. */
  profile?: SandboxProfile
  labels: Record<string, string>
}

export type SandboxState = 'created' | 'running' | 'paused' | 'stopped' | 'removing' | 'absent'

/** One sandbox as the engine knows it. */
export interface BackendSandbox {
  /** The engine's id. The sbxd key is derived from it. */
  id: string
  name: string
  state: SandboxState
  labels: Record<string, string>
}

/** One workspace as the engine knows it. */
export interface BackendVolume {
  name: string
  labels: Record<string, string>
}

/**
 * Where sandboxes live. Everything a command does goes through `openStream`; the rest is lifecycle.
 * Every method rejects with a `SandboxError`; each unary call has its own deadline.
 */
export interface SandboxBackend {
  capabilities(signal?: AbortSignal): Promise<BackendCapabilities>
  /**
   * A hash of what a container made from this spec now would be (image id, limits, hardening), whatever its
   * name. `create` writes it to the label `sandlot.spec`; a stopped sandbox whose label differs is replaced.
   * Left out by a backend whose sandboxes never differ.
   */
  fingerprint?(spec: SandboxSpec, signal?: AbortSignal): Promise<string>
  /** Create, or find by name; idempotent. Does not start it. */
  create(spec: SandboxSpec, signal?: AbortSignal): Promise<BackendSandbox>
  start(id: string): Promise<void>
  /** Stop at once (sbxd ends on an outside SIGTERM); idempotent. */
  stop(id: string): Promise<void>
  pause(id: string): Promise<void>
  resume(id: string): Promise<void>
  /** Idempotent. */
  rename(id: string, name: string): Promise<void>
  /** Remove the container; its volume stays. Idempotent. */
  remove(id: string): Promise<void>
  /** A volume is removed only by an explicit request of a person. */
  removeVolume(name: string): Promise<void>
  /** Every volume of this deployment's sandboxes, in use or not. */
  listVolumes(): Promise<BackendVolume[]>
  inspect(idOrName: string): Promise<BackendSandbox | undefined>
  list(labels: Record<string, string>): Promise<BackendSandbox[]>
  /**
   * A duplex byte stream to sbxd: what is written arrives on its stdin, what is read is its stdout, raw.
   * Back-pressure works in both directions. May be opened before `start`.
   */
  openStream(id: string, signal?: AbortSignal): Promise<Duplex>
  /**
   * What is left on the file system that holds the workspaces; `files` is Infinity where inodes are made as needed.
   * Undefined, or left out, where this process cannot see it.
   */
  hostDisk?(): Promise<{ bytes: number; files: number } | undefined>
  /** Whether it answers, as the last calls have shown; contacts nothing. Left out where nothing can hang. */
  health?(): BackendHealth
  close(): Promise<void>
}
