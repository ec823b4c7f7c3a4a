/**
 * What is where in a data folder. With compose the service has a folder of its own in it; a backup
 * has the files of both in one, which the next start of compose parts again.
 */
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join, relative } from 'node:path'
import { z } from 'zod'
import type { DatabaseName } from './manifest.ts'
import { BackupError } from './backup-error.ts'

/** Made anew, or no data: neither copied, nor in the way of a restore. */
const NO_DATA = ['run', 'replicas', 'log', 'backups', 'backup-status.json']
/** There while a restore is under way: what is in the folder is not whole. */
export const RESTORING = 'restoring'

/** Where the service's files are. */
function serviceFolder(data: string): string {
  const own = join(data, 'service')
  return existsSync(join(own, 'accounts.db')) || existsSync(join(own, 'keys')) ? own : data
}

export function databasePath(data: string, name: DatabaseName): string {
  return join(name === 'accounts.db' ? serviceFolder(data) : data, name)
}

/** A database, and what SQLite and its migrations put beside it. */
const DATABASE = /\.db($|-wal$|-shm$|\.before-|\.migrating|\.writing)/

/**
 * Arguments of tar for everything but the databases; `target` may be a folder in it. By name, since
 * the folder itself would bring its owner and mode with it. `keys`: where the folder of keys is.
 */
export function tarArguments(data: string, target: string, keys = join(data, 'keys')): string[] {
  // A link alone would be in it.
  const real = realpathSync(keys)
  const isElsewhere = real !== join(realpathSync(data), 'keys')
  const service = serviceFolder(data)
  const inside = relative(data, target)
  const left = [
    ...NO_DATA,
    'before-upgrade',
    'before-upgrade.partial',
    RESTORING,
    ...(isElsewhere ? ['keys'] : []),
    ...(service === data ? [] : ['service']),
  ]
  const namesIn = (folder: string): string[] => {
    const names = readdirSync(folder).filter((name) => !left.includes(name) && !DATABASE.test(name))
    return names.length === 0 ? [] : ['-C', folder, ...names.map((name) => `./${name}`)]
  }
  return [
    ...(inside === '' || inside.startsWith('..') ? [] : ['--anchored', `--exclude=./${inside}`]),
    ...namesIn(data),
    ...(service === data ? [] : namesIn(service)),
    // In the backup they are where they are by default.
    ...(isElsewhere ? [`--transform=s,^\\.${literal(real)},./keys,`, '-C', '/', `.${real}`] : []),
  ]
}

/** In an expression of sed with commas around it. */
function literal(path: string): string {
  return path.replaceAll(/[\\^$.*[\],]/g, '\\$&')
}

const deploymentKeys = z.object({ id: z.string() })

/**
 * The id that containers and volumes carry. `hasFiles`: whether the databases are in the folder.
 * `keys`: where the folder of keys is. Throws `BackupError('no_deployment')`.
 */
export function deploymentOf(data: string, hasFiles: boolean, keys = join(data, 'keys')): string {
  const file = join(keys, 'deployment.json')
  if (!existsSync(file) || (hasFiles && !existsSync(join(data, 'sessions.db'))))
    throw new BackupError(
      'no_deployment',
      `There is no Sandlot in ${data}; nothing was copied.`,
      'Set SANDLOT_DATA to the data folder of yours. It is there once it has run.',
    )
  return deploymentKeys.parse(JSON.parse(readFileSync(file, 'utf8'))).id
}

/** What of a deployment is there already; empty where nothing was ever started. */
export function dataIn(data: string): string[] {
  return existsSync(data) ? readdirSync(data).filter((name) => !NO_DATA.includes(name)) : []
}
