/** Writes the file of `last-end.ts` without zod: 12 MB of the heap of the watchdog’s thread. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * `left`: a shutdown that released every prompt. `blocked`: its only thread was blocked in this
 * step; `step` is absent when no prompt's code ran.
 */
export type LastEnd =
  | { how: 'left' }
  | { how: 'blocked'; step?: { sessionId: string; promptId: string } | undefined }

export const lastEndFile = (dataFolder: string): string => join(dataFolder, 'run', 'last-end.json')

/** Synchronous: the process ends behind it. Throws what the file system throws. */
export function writeLastEnd(dataFolder: string, end: LastEnd): void {
  writeFileSync(lastEndFile(dataFolder), JSON.stringify(end), { mode: 0o600 })
}
