import { accessSync, constants, existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from '@sandlot/shared/config'
import type { Context } from '../context.ts'
import { StepError } from '../steps.ts'

/** Folders of system programs that a PATH may lack. */
const SYSTEM = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin', '/snap/bin']

/** The path of a program in PATH or in the system's folders. */
export function findProgram(name: string, environment: Environment): string | undefined {
  const folders = [...(environment['PATH'] ?? '').split(':').filter((folder) => folder !== ''), ...SYSTEM]
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false // not there, or not executable
  }
}

/**
 * Arguments of node that run a program of a package: from its build, or from its sources where
 * there is none. `path`: below the folder of either, without an extension.
 * @throws StepError where there is neither a build nor the dependencies of the sources.
 */
export function programArguments(
  { root }: Pick<Context['config'], 'root'>,
  name: string,
  path: string,
): string[] {
  const folder = join(root, 'packages', name)
  const built = join(folder, 'dist', `${path}.js`)
  if (existsSync(built)) return [built]
  if (existsSync(join(folder, 'node_modules')))
    return ['--conditions=sandlot-source', join(folder, 'src', `${path}.ts`)]
  throw new StepError('Sandlot has not been built yet.', 'Run ./sandlot up once; it builds Sandlot.')
}
