/**
 * The writing half of `last-end.ts`, without its parser: the watchdog's thread has a heap of its
 * own, and zod takes 12 MB.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LastEnd } from './last-end.ts'

export const lastEndFile = (dataFolder: string): string => join(dataFolder, 'run', 'last-end.json')

/** Synchronous: the process ends behind it. Throws what the file system throws. */
export function writeLastEnd(dataFolder: string, end: LastEnd): void {
  writeFileSync(lastEndFile(dataFolder), JSON.stringify(end), { mode: 0o600 })
}
