/** What an operator can set about the limits of one sandbox, and of all of them on one host. */
import type { HostOptions } from '@sandlot/sandbox/controller/host-guard'
import { limitVariables as sandboxVariables } from '@sandlot/sandbox/controller/limit-settings'
import { wholeNumber } from '@sandlot/shared/config'
import { z } from 'zod'

const MiB = 1024 * 1024

export const limitVariables = {
  ...sandboxVariables(wholeNumber),
  SANDLOT_HOST_SANDBOXES: wholeNumber(0, 100_000).default(0),
  SANDLOT_HOST_MEMORY_MB: wholeNumber(0, 1024 * 1024 * 1024).default(0),
  SANDLOT_HOST_DISK_FREE_MB: wholeNumber(0, 1024 * 1024 * 1024).default(2048),
  SANDLOT_HOST_FILES_FREE: wholeNumber(0, 2 ** 40).default(10_000),
}

const parsed = z.object(limitVariables)

/** Limits of the host. 0 in a setting is none. */
export function readHost(read: z.output<typeof parsed>): HostOptions {
  return {
    ...(read.SANDLOT_HOST_SANDBOXES === 0 ? {} : { sandboxes: read.SANDLOT_HOST_SANDBOXES }),
    ...(read.SANDLOT_HOST_MEMORY_MB === 0 ? {} : { memoryBytes: read.SANDLOT_HOST_MEMORY_MB * MiB }),
    diskFloor: { bytes: read.SANDLOT_HOST_DISK_FREE_MB * MiB, files: read.SANDLOT_HOST_FILES_FREE },
  }
}
