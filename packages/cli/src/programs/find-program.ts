import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from '@sandlot/shared/config'

/** Folders of system programs that a user's PATH may lack. */
const SYSTEM = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin', '/snap/bin']

/**
 * The path of a program, looked for in PATH and in the system's folders; undefined when there is
 * none.
 */
export function findProgram(name: string, environment: Environment): string | undefined {
  const folders = [...(environment['PATH'] ?? '').split(':').filter((folder) => folder !== ''), ...SYSTEM]
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false // the question was whether
  }
}
