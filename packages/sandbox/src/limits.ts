import type { SandboxLimits } from './backend.ts'
import type { DiskBudget } from './sandbox.ts'

const MiB = 1024 * 1024
const DISK_ENTRIES = 500_000

/** 2 GiB of memory, two CPUs, 512 processes, 256 MiB of /tmp, a workspace of 4 GiB in at most half a million files. */
export const DEFAULT_LIMITS: SandboxLimits = {
  memoryBytes: 2048 * MiB,
  cpus: 2,
  pids: 512,
  tmpBytes: 256 * MiB,
  diskBytes: 4096 * MiB,
  diskEntries: DISK_ENTRIES,
  openFiles: 4096,
}

/** What sbxd is told that a workspace with these limits may hold. */
export function diskBudget(limits: SandboxLimits): DiskBudget {
  return { bytes: limits.diskBytes, entries: limits.diskEntries ?? DISK_ENTRIES }
}
