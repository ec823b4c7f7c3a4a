/**
 * The layout of a data folder. With compose the service has its own subfolder; a backup merges
 * both, and the next start of compose separates them again.
 */
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join, relative } from 'node:path'
import { z } from 'zod'
import type { DatabaseName } from './manifest.ts'
import { BackupError } from './backup-error.ts'

/** Recreated at each start, or not data: neither copied nor an obstacle to a restore. */
const NO_DATA = ['run', 'replicas', 'log', 'backups', 'backup-status.json']
/** Exists while a restore is in progress, and the folder is incomplete. */
export const RESTORING = 'restoring'

/** The folder of the service's files. */
function serviceFolder(data: string): string {
  const own = join(data, 'service')
  return existsSync(join(own, 'accounts.db')) || existsSync(join(own, 'keys')) ? own : data
}

export function databasePath(data: string, name: DatabaseName): string {
  return join(name === 'accounts.db' ? serviceFolder(data) : data, name)
}

/** A database, and the files of SQLite and of migrations that belong to it. */
const DATABASE = /\.db($|-wal$|-shm$|\.before-|\.migrating|\.writing)/

/**
 * Arguments of tar for everything but the databases. Lists names, since the folder itself would add
 * its owner and mode. `target`: the folder of backups, excluded. `keys`: the folder of keys.
 */
export function tarArguments(data: string, target: string, keys = join(data, 'keys')): string[] {
  // tar would copy only the link.
  const real = realpathSync(keys)
  const isElsewhere = real !== join(realpathSync(data), 'keys')
  const service = serviceFolder(data)
  const inside = relative(data, target)
  const excluded = [
    ...NO_DATA,
    'before-upgrade',
    'before-upgrade.partial',
    RESTORING,
    ...(isElsewhere ? ['keys'] : []),
    ...(service === data ? [] : ['service']),
  ]
  const namesIn = (folder: string): string[] => {
    const names = readdirSync(folder).filter((name) => !excluded.includes(name) && !DATABASE.test(name))
    return names.length === 0 ? [] : ['-C', folder, ...names.map((name) => `./${name}`)]
  }
  return [
    ...(inside === '' || inside.startsWith('..') ? [] : ['--anchored', `--exclude=./${inside}`]),
    ...namesIn(data),
    ...(service === data ? [] : namesIn(service)),
    // In the backup, keys are in their default folder.
    ...(isElsewhere ? [`--transform=s,^\\.${literal(real)},./keys,`, '-C', '/', `.${real}`] : []),
  ]
}

/** Escapes a path for a sed expression that is delimited by commas. */
function literal(path: string): string {
  return path.replaceAll(/[\\^$.*[\],]/g, '\\$&')
}

const deploymentKeys = z.object({ id: z.string() })

/**
 * The id in the names of containers and volumes. `hasFiles`: the databases are in the folder.
 * `keys`: the folder of keys. Throws `BackupError('no_deployment')`.
 */
export function deploymentOf(data: string, hasFiles: boolean, keys = join(data, 'keys')): string {
  const file = join(keys, 'deployment.json')
  if (!existsSync(file) || (hasFiles && !existsSync(join(data, 'sessions.db'))))
    throw new BackupError(
      'no_deployment',
      `No Sandlot found in ${data}; nothing was copied.`,
      'Set SANDLOT_DATA to your data folder. The first start of Sandlot creates it.',
    )
  return deploymentKeys.parse(JSON.parse(readFileSync(file, 'utf8'))).id
}

/** Existing data of a deployment; empty before the first start. */
export function dataIn(data: string): string[] {
  return existsSync(data) ? readdirSync(data).filter((name) => !NO_DATA.includes(name)) : []
}
