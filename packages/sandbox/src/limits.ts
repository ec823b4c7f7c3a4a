import type { SandboxLimits } from './backend.ts'

const MiB = 1024 * 1024

/** 2 GiB of memory, two CPUs, 512 processes, 256 MiB of /tmp, files up to 4 GiB. */
export const DEFAULT_LIMITS: SandboxLimits = {
  memoryBytes: 2048 * MiB,
  cpus: 2,
  pids: 512,
  tmpBytes: 256 * MiB,
  diskBytes: 4096 * MiB,
  openFiles: 4096,
}
