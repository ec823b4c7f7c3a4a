/**
 * Settings for the limits of one sandbox, read alike by the agent, which requests, and the gate,
 * which allows.
 */
import type { SandboxLimits } from '../backend.ts'
import { checkLimits, DEFAULT_LIMITS, mostTmpBytes } from '../limits.ts'

const MiB = 1024 * 1024

interface LimitSettings {
  SANDLOT_SANDBOX_MEMORY_MB: number
  SANDLOT_SANDBOX_CPUS: number
  SANDLOT_SANDBOX_PIDS: number
  SANDLOT_SANDBOX_TMP_MB: number | undefined
  SANDLOT_SANDBOX_DISK_MB: number
  /** Only the agent limits them. */
  SANDLOT_SANDBOX_DISK_ENTRIES?: number
}

/**
 * Limits of one sandbox. Without its own setting, /tmp shrinks with the memory that contains it.
 * Conflicts are added as sentences to `problems`.
 */
export function readLimits(read: LimitSettings, problems: string[]): SandboxLimits {
  const memoryBytes = read.SANDLOT_SANDBOX_MEMORY_MB * MiB
  const limits: SandboxLimits = {
    memoryBytes,
    cpus: read.SANDLOT_SANDBOX_CPUS,
    pids: read.SANDLOT_SANDBOX_PIDS,
    tmpBytes:
      read.SANDLOT_SANDBOX_TMP_MB === undefined
        ? Math.min(DEFAULT_LIMITS.tmpBytes, mostTmpBytes(memoryBytes))
        : read.SANDLOT_SANDBOX_TMP_MB * MiB,
    diskBytes: read.SANDLOT_SANDBOX_DISK_MB * MiB,
    diskEntries: read.SANDLOT_SANDBOX_DISK_ENTRIES ?? DEFAULT_LIMITS.diskEntries ?? 0,
    openFiles: DEFAULT_LIMITS.openFiles,
  }
  try {
    checkLimits(limits)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const most = Math.floor(mostTmpBytes(memoryBytes) / MiB)
    problems.push(
      `SANDLOT_SANDBOX_TMP_MB: ${why} /tmp is memory: with SANDLOT_SANDBOX_MEMORY_MB=${read.SANDLOT_SANDBOX_MEMORY_MB} set it to at most ${most}`,
    )
  }
  return limits
}
