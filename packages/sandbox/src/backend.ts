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

/**
 * `open`: it does not answer and calls fail at once; `half-open`: the same, and it is being asked
 * again just now.
 */
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

/**
 * The system call filter of a sandbox. `debug`: as `default`, and programs may trace others of the
 * same sandbox.
 */
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
  /**
   * Its volume was made before: where it is not there, `create` makes nothing and rejects with
   * `workspace_missing`. Default false: the volume is made.
   */
  hasWorkspace?: boolean
}

export type SandboxState = 'created' | 'running' | 'paused' | 'stopped' | 'removing' | 'absent'

/** One sandbox as the engine knows it. */
export interface BackendSandbox {
  /** The engine's id. The sbxd key is derived from it. */
  id: string
  name: string
  state: SandboxState
  labels: Record<string, string>
  /** The name of its image, where it is known. */
  image?: string | undefined
}

/** One workspace as the engine knows it. */
export interface BackendVolume {
  name: string
  labels: Record<string, string>
}

/** Whose a sandbox is, as its name says it. */
export interface SandboxOwner {
  /** See `ownerTag`. */
  tag: string
  /** Of the container among those of its slot; from the ledger, from 1. */
  generation: number
}

/**
 * The life of sandboxes. Everything a command does goes through `openStream`. Every method rejects
 * with a `SandboxError`; each but `openStream` has its own deadline.
 */
export interface SandboxBackend {
  /** Create, or find by name. Idempotent. Does not start it. */
  create(spec: SandboxSpec, signal?: AbortSignal): Promise<BackendSandbox>
  /** Idempotent. */
  start(id: string): Promise<void>
  /** Stop at once (sbxd ends on an outside SIGTERM). Idempotent. */
  stop(id: string): Promise<void>
  /** Idempotent. */
  pause(id: string): Promise<void>
  /** Idempotent. */
  resume(id: string): Promise<void>
  /**
   * Give this sandbox the name of its owner. Idempotent. Rejects with `sandbox_lost` when there is
   * no such sandbox, and when another one has that name.
   */
  claim(id: string, owner: SandboxOwner): Promise<void>
  /** Remove the container; its volume stays. Idempotent. */
  remove(id: string): Promise<void>
  /** All of this deployment that carry these labels. */
  list(labels: Record<string, string>): Promise<BackendSandbox[]>
  /**
   * A duplex byte stream to sbxd: what is written arrives on its stdin, what is read is its stdout,
   * raw. Back-pressure works in both directions. May be opened before `start`.
   */
  openStream(id: string, signal?: AbortSignal): Promise<Duplex>
  readonly inventory: BackendInventory
}

/** What is there and what it can do. Every method rejects with a `SandboxError`. */
interface BackendInventory {
  capabilities(signal?: AbortSignal): Promise<BackendCapabilities>
  /**
   * What the engine calls itself, the same wherever it is reached from. Omitted where there is none
   * beside this process.
   */
  engineId?(): Promise<string>
  inspect(idOrName: string): Promise<BackendSandbox | undefined>
  /**
   * A hash of what a container made from this spec now would be (image id, limits, hardening),
   * whatever its name. `create` writes it to the label `sandlot.spec`; a stopped sandbox whose
   * label differs is replaced. Omitted by a backend whose sandboxes never differ.
   */
  fingerprint?(spec: SandboxSpec, signal?: AbortSignal): Promise<string>
  /** The name of what a sandbox of this image is made from now. Omitted where that is its own. */
  imageName?(image: string): Promise<string>
  readonly volumes: BackendVolumes
  /**
   * Free space of the file system that holds the workspaces. Undefined, or omitted, where it cannot
   * be seen from here.
   */
  hostDisk?(): Promise<FreeSpace | undefined>
  /**
   * Whether the engine answers, by its last calls; contacts nothing. Omitted where nothing can
   * hang.
   */
  health?(): BackendHealth
  close(): Promise<void>
}

export interface BackendVolumes {
  /** Every volume of this deployment's sandboxes, in use or not. */
  list(): Promise<BackendVolume[]>
  /** Whether there is a volume of this deployment of this name. */
  has(name: string, signal?: AbortSignal): Promise<boolean>
  /**
   * The spec's volume, made if it is not there. Idempotent. Rejects with `exists` when the name
   * belongs to something else.
   */
  ensure(spec: SandboxSpec, signal?: AbortSignal): Promise<void>
  /** Idempotent. Only on an explicit request of a person. */
  remove(name: string): Promise<void>
}

export interface FreeSpace {
  bytes: number
  /** Infinity where inodes are made as needed. */
  files: number
}
