import type { SandboxLimits, SandboxProfile } from './backend.ts'
import { SandboxError } from './errors.ts'
import type { DiskBudget } from './sandbox.ts'

const MiB = 1024 * 1024
const DISK_ENTRIES = 500_000
/** Size of /run, which is memory. */
export const RUN_BYTES = 4 * MiB

/**
 * 2 GiB of memory, two CPUs, 512 processes, 256 MiB of /tmp, 4 GiB of workspace in at most half a
 * million files.
 */
export const DEFAULT_LIMITS: SandboxLimits = {
  memoryBytes: 2048 * MiB,
  cpus: 2,
  pids: 512,
  tmpBytes: 256 * MiB,
  diskBytes: 4096 * MiB,
  diskEntries: DISK_ENTRIES,
  openFiles: 4096,
}

/**
 * Resource limits of every process, by the engine's name, apart from `core` (see the create
 * template). Never nproc: it counts per uid over the whole host.
 */
export function processLimits(limits: Pick<SandboxLimits, 'openFiles' | 'diskBytes'>): [string, number][] {
  return [
    ['nofile', limits.openFiles],
    ['fsize', limits.diskBytes],
    ['memlock', 64 * 1024],
    ['sigpending', 1024],
    ['msgqueue', 256 * 1024],
  ]
}

/**
 * Arguments of a sandbox's sbxd: the limits that it sets itself, for engines that set none, and the
 * engine's mark of a debug profile, without which sbxd lets no command trace.
 */
export function sbxdArguments(limits: SandboxLimits, profile: SandboxProfile = 'default'): string[] {
  return [
    ...processLimits(limits).flatMap(([name, most]) => [`--limit-${name}`, String(most)]),
    ...(profile === 'default' ? [] : ['--profile', profile]),
  ]
}

/** Workspace budget for sbxd. */
export function diskBudget(limits: SandboxLimits): DiskBudget {
  return { bytes: limits.diskBytes, entries: limits.diskEntries ?? DISK_ENTRIES }
}

/** Size of /dev/shm: 64 MiB, less in a small sandbox. */
export function shmBytes(limits: Pick<SandboxLimits, 'memoryBytes'>): number {
  return Math.min(64 * MiB, Math.floor(limits.memoryBytes / 16))
}

/**
 * Throws `invalid_arguments` for an unusable limit. Pages of /tmp, /run and /dev/shm are charged to
 * the sandbox, and an OOM kill does not free them: together they may be at most a quarter of the
 * memory.
 */
export function checkLimits(limits: SandboxLimits): void {
  const set: [string, number | undefined][] = Object.entries(limits)
  for (const [name, value] of set) {
    if (value === undefined) continue
    if (!(Number.isFinite(value) && value > 0))
      throw badLimit(`${name} must be a positive number, not ${value}`)
    if (name !== 'cpus' && !Number.isSafeInteger(value))
      throw badLimit(`${name} must be a whole number, not ${value}`)
  }
  const most = mostTmpBytes(limits.memoryBytes)
  if (limits.tmpBytes > most)
    throw badLimit(`tmpBytes may be at most ${most} with memoryBytes ${limits.memoryBytes}`)
}

/** Remainder of a quarter of the memory for /tmp. */
export function mostTmpBytes(memoryBytes: number): number {
  return Math.max(0, Math.floor(memoryBytes / 4) - RUN_BYTES - shmBytes({ memoryBytes }))
}

function badLimit(text: string): SandboxError {
  return new SandboxError('invalid_arguments', `Sandbox limits: ${text}.`)
}
