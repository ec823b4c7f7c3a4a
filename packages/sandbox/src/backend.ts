import type { Duplex } from 'node:stream'

import type { SandboxError } from './errors.ts'

/** Capabilities of an engine. Probed once, shown by doctor and `/readyz`. */
export interface BackendCapabilities {
  /** Name as in `SANDLOT_SANDBOX`, for example `docker`. */
  name: string
  /** False for `local-process`: it isolates nothing, and every display must say so. */
  isolates: boolean
  /** Engine version, for people. */
  version: string
  apiVersion?: string
  runtimes: string[]
  cgroup: 'v1' | 'v2' | 'none'
  /** `hard`: the file system enforces a disk budget; `soft`: sbxd watches it. */
  quota: 'hard' | 'soft' | 'none'
  pause: boolean
  /** Warnings for an operator, one plain sentence each. */
  warnings: string[]
}

/**
 * `open`: it does not answer and calls fail at once; `half-open`: the same, while it is pinged
 * again.
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
  /** Maximum size of a file and, where the backend enforces it, of the volume. */
  diskBytes: number
  /** Names in the workspace: files, directories, links. Default 500,000. */
  diskEntries?: number
  openFiles: number
}

/**
 * System call filter of a sandbox. `debug`: as `default`, and programs may trace others of the same
 * sandbox.
 */
export type SandboxProfile = 'default' | 'debug'

/** Everything needed to create a sandbox. Equal specs make interchangeable sandboxes. */
export interface SandboxSpec {
  /** Container name, never used twice: `sbx-<deployment>-<slot>-<owner>-<n>`. */
  name: string
  /** `[a-z0-9]{8}`. A slot has one uid and one volume for ever. */
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
   * Its volume was created before: where it is missing, `create` rejects with `workspace_missing`.
   * Default false: the volume is created.
   */
  hasWorkspace?: boolean
}

export type SandboxState = 'created' | 'running' | 'paused' | 'stopped' | 'removing' | 'absent'

/** One sandbox as the engine knows it. */
export interface BackendSandbox {
  /** The engine's id. */
  id: string
  name: string
  state: SandboxState
  labels: Record<string, string>
  /** The name of its image, where it is known. */
  image?: string | undefined
}

/** A sandbox as a caller has just seen it, which saves `open` a look of its own. */
export type SeenSandbox = Pick<BackendSandbox, 'id' | 'state'>

/** One workspace as the engine knows it. */
export interface BackendVolume {
  name: string
  labels: Record<string, string>
}

/** A running sandbox, and one way to its sbxd. */
export interface OpenedSandbox {
  /**
   * Duplex bytes: writes arrive at sbxd, reads are what it sends. Back-pressure works in both
   * directions. An error before its first use ends nothing: the stream is then destroyed.
   */
  stream: Duplex
  /**
   * Identity of this run, from which the sbxd key is derived: never given to another sandbox. Often
   * the id.
   */
  keyId: string
  /** Why the run before this one ended, where this call has begun this one and knows it. */
  ended?: SandboxError | undefined
}

/** Owner of a sandbox, from its name. */
export interface SandboxOwner {
  /** See `ownerTag`. */
  tag: string
  /** Number of the container among those of its slot; from the ledger, from 1. */
  generation: number
}

/**
 * Life cycle of sandboxes. Commands go through the streams of `open`. Every method rejects with a
 * `SandboxError` and has its own deadline.
 */
export interface SandboxBackend {
  /** Creates it, or finds it by name, without starting it. Idempotent. */
  create(spec: SandboxSpec, signal?: AbortSignal): Promise<BackendSandbox>
  /**
   * Runs it if it does not run, and opens one more stream to its sbxd, which has then not yet
   * started any command that this stream could miss. `state`: as last seen; a paused one must be
   * resumed before. The stream to one that has ended since may stay silent.
   */
  open(sandbox: SeenSandbox, signal?: AbortSignal): Promise<OpenedSandbox>
  /** Stops at once (sbxd exits on an outside SIGTERM). Idempotent. */
  stop(id: string): Promise<void>
  /** Idempotent. */
  pause(id: string): Promise<void>
  /** Idempotent. */
  resume(id: string): Promise<void>
  /**
   * Renames this sandbox after its owner. Idempotent. Rejects with `sandbox_lost` when there is no
   * such sandbox, or another one has that name.
   */
  claim(id: string, owner: SandboxOwner): Promise<void>
  /** Removes the container; its volume stays. Idempotent. */
  remove(id: string): Promise<void>
  /** All sandboxes of this deployment with these labels. */
  list(labels: Record<string, string>): Promise<BackendSandbox[]>
  readonly inventory: BackendInventory
}

/** An address at which nothing may answer a sandbox. */
export interface ForbiddenAddress {
  /** For messages: `the API server`. No comma. */
  name: string
  /** IPv4 or IPv6. */
  host: string
  port: number
  /** True: a DNS query by UDP; default: a TCP connection. */
  udp?: boolean
}

/** Inventory of an engine. Every method rejects with a `SandboxError`. */
interface BackendInventory {
  capabilities(signal?: AbortSignal): Promise<BackendCapabilities>
  /**
   * The engine's own id, the same from wherever it is reached. Omitted where there is none apart
   * from this process.
   */
  engineId?(): Promise<string>
  inspect(idOrName: string): Promise<BackendSandbox | undefined>
  /**
   * Hash of the container that this spec would create now (image id, limits, hardening),
   * independent of its name. `create` writes it to the label `sandlot.spec`; a stopped sandbox
   * whose label differs is replaced. Omitted by a backend whose sandboxes never differ.
   */
  fingerprint?(spec: SandboxSpec, signal?: AbortSignal): Promise<string>
  /** Name of the image that is used for this one now. Omitted where that is the image itself. */
  imageName?(image: string): Promise<string>
  readonly volumes: BackendVolumes
  readonly copies: BackendCopies
  /**
   * Isolation of a running sandbox is proved where nothing answers at these. Omitted: where there
   * is no interface but `lo`.
   */
  unreachable?(id: string): Promise<readonly ForbiddenAddress[]>
  /**
   * Free space of the workspaces' file system. Undefined, or omitted, where it is not visible from
   * here.
   */
  hostDisk?(): Promise<FreeSpace | undefined>
  /** Health by the last calls; contacts nothing. Omitted where nothing can hang. */
  health?(): BackendHealth
  close(): Promise<void>
}

export interface BackendVolumes {
  /** A deep tree is more than the engine can remove: volumes are emptied first. */
  readonly emptyFirst: boolean
  /** Every volume of this deployment's sandboxes, in use or not. */
  list(): Promise<BackendVolume[]>
  /** True for a volume of this deployment only. */
  has(name: string, signal?: AbortSignal): Promise<boolean>
  /**
   * Creates the spec's volume if it is missing. Idempotent. Rejects with `exists` when the name
   * belongs to something else.
   */
  ensure(spec: SandboxSpec, signal?: AbortSignal): Promise<void>
  /** Idempotent. Only on a person's explicit request. */
  remove(name: string): Promise<void>
}

/** Copies of whole workspaces as tar streams, also while their sandboxes run. */
export interface BackendCopies {
  /** True for any volume of this name, also of another owner. */
  exists(name: string): Promise<boolean>
  /** Its files, each as it is when it is read. Rejects unless the stream is complete. */
  read(name: string): AsyncIterable<Buffer>
  /** Creates the volume and fills it from a tar stream. A failed one is removed again. */
  write(volume: BackendVolume, tar: AsyncIterable<Uint8Array>): Promise<void>
  /** Removes the helpers of a process that was killed. Only where no other process copies. */
  removeLeftHelpers(): Promise<void>
}

export interface FreeSpace {
  bytes: number
  /** Infinity where inodes are created as needed. */
  files: number
}
