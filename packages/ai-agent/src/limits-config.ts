/** What an operator can set about the limits of one sandbox, and of all of them on one host. */
import { checkLimits, mostTmpBytes } from '@sandlot/sandbox/backends/docker/create-template'
import type { SandboxLimits } from '@sandlot/sandbox/backend'
import type { HostOptions } from '@sandlot/sandbox/host-guard'
import { DEFAULT_LIMITS } from '@sandlot/sandbox/limits'
import { wholeNumber } from '@sandlot/shared/config'
import { messageOf } from '@sandlot/shared/errors'
import { z } from 'zod'

const MiB = 1024 * 1024

export const limitVariables = {
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
  SANDLOT_HOST_SANDBOXES: wholeNumber(0, 100_000).default(0),
  SANDLOT_HOST_MEMORY_MB: wholeNumber(0, 1024 * 1024 * 1024).default(0),
  SANDLOT_HOST_DISK_FREE_MB: wholeNumber(0, 1024 * 1024 * 1024).default(2048),
  SANDLOT_HOST_FILES_FREE: wholeNumber(0, 2 ** 40).default(10_000),
}

const parsed = z.object(limitVariables)
type LimitSettings = z.output<typeof parsed>

/** Limits of one sandbox. Without a setting of its own, /tmp shrinks with the memory that it is part of. */
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
    const most = Math.floor(mostTmpBytes(memoryBytes) / MiB)
    problems.push(
      `SANDLOT_SANDBOX_TMP_MB: ${messageOf(error)} /tmp is memory: with SANDLOT_SANDBOX_MEMORY_MB=${read.SANDLOT_SANDBOX_MEMORY_MB} set it to at most ${most}`,
    )
  }
  return limits
}

/** Limits of the host. 0 in a setting is none. */
export function readHost(read: LimitSettings): HostOptions {
  return {
    ...(read.SANDLOT_HOST_SANDBOXES === 0 ? {} : { sandboxes: read.SANDLOT_HOST_SANDBOXES }),
    ...(read.SANDLOT_HOST_MEMORY_MB === 0 ? {} : { memoryBytes: read.SANDLOT_HOST_MEMORY_MB * MiB }),
    diskFloor: { bytes: read.SANDLOT_HOST_DISK_FREE_MB * MiB, files: read.SANDLOT_HOST_FILES_FREE },
  }
}
