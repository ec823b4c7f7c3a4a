/**
 * Settings for the limits of one sandbox, read alike by the agent, which requests, and the gate,
 * which allows.
 */
import { z } from 'zod'

import type { SandboxLimits } from '../backend.ts'
import { checkLimits, DEFAULT_LIMITS, mostTmpBytes } from '../limits.ts'

const MiB = 1024 * 1024

/** Settings by their environment names. `wholeNumber` parses a decimal from `min` to `max`. */
export function limitVariables(wholeNumber: (min: number, max: number) => z.ZodType<number, string>) {
  return {
    SANDLOT_SANDBOX_MEMORY_MB: wholeNumber(64, 1024 * 1024).default(DEFAULT_LIMITS.memoryBytes / MiB),
    SANDLOT_SANDBOX_CPUS: z
      .string()
      .regex(/^\d+(\.\d+)?$/, 'must be a number like 2 or 0.5')
      .transform(Number)
      .pipe(z.number().min(0.1, 'must be at least 0.1').max(1024))
      .default(DEFAULT_LIMITS.cpus),
    SANDLOT_SANDBOX_PIDS: wholeNumber(16, 1_000_000).default(DEFAULT_LIMITS.pids),
    SANDLOT_SANDBOX_TMP_MB: wholeNumber(1, 256 * 1024).optional(),
    SANDLOT_SANDBOX_DISK_MB: wholeNumber(64, 16 * 1024 * 1024).default(DEFAULT_LIMITS.diskBytes / MiB),
    SANDLOT_SANDBOX_DISK_ENTRIES: wholeNumber(1_000, 2 ** 31).optional(),
    SANDLOT_SANDBOX_OPEN_FILES: wholeNumber(64, 1_048_576).default(DEFAULT_LIMITS.openFiles),
  }
}

type LimitSettings = z.output<z.ZodObject<ReturnType<typeof limitVariables>>>

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
    openFiles: read.SANDLOT_SANDBOX_OPEN_FILES,
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
