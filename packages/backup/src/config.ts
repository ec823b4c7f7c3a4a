/** Settings of backups. The only file here that reads the environment. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { readEngineTls } from '@sandlot/sandbox/backends/docker/tls-settings'
import { readKubernetes } from '@sandlot/sandbox/backends/kubernetes/settings'
import { readLimits } from '@sandlot/sandbox/controller/limit-settings'
import { sandboxImages } from '@sandlot/sandbox/controller/images'
import { ConfigError, type Environment, readConfig, settingSchema } from '@sandlot/shared/config'
import type { SettingValues } from '@sandlot/shared/config/settings'
import { imageProblem, type SandboxBackendName } from '@sandlot/shared/config/sandbox-backends'
import { z } from 'zod'
import type { OpenWorkspaces } from './backup.ts'
import type { PostgresPlace } from './pg-process.ts'

interface BackupConfig {
  data: string
  /** The folder of keys, if outside of `data`. */
  keys: string | undefined
  /** Undefined: the databases are files. */
  postgres: PostgresPlace | undefined
  /** The folder of backups. */
  folder: string
  passphrase: string | undefined
  /** Undefined: no schedule. */
  everyMs: number | undefined
  keep: number
  workspaces: OpenWorkspaces | undefined
  version: string
}

/** @throws ConfigError with every problem at once. */
export function readBackupConfig(env: Environment = process.env): BackupConfig {
  const read = readConfig(settingSchema('backup'), env, (path) => readFileSync(path, 'utf8'))
  const problems: string[] = []
  const workspaces = WORKSPACES[read.SANDLOT_SANDBOX](read, problems, env)
  if (problems.length > 0) throw new ConfigError(problems)
  const data = resolve(read.SANDLOT_DATA)
  const keys = resolve(read.SANDLOT_KEYS_DIR ?? join(data, 'keys'))
  const hours = read.SANDLOT_BACKUP_EVERY_HOURS
  return {
    data,
    keys: keys === join(data, 'keys') ? undefined : keys,
    postgres: read.DATABASE_URL === undefined ? undefined : { url: read.DATABASE_URL, machine: env },
    folder: resolve(read.SANDLOT_BACKUP_DIR ?? join(data, 'backups')),
    passphrase: read.SANDLOT_BACKUP_PASSPHRASE,
    everyMs: hours === 0 ? undefined : hours * 3_600_000,
    keep: read.SANDLOT_BACKUP_KEEP,
    workspaces,
    version: ownVersion(),
  }
}

/** One for each line of `SANDBOX_BACKENDS`; undefined where workspaces are in the data folder. */
const WORKSPACES: Record<
  SandboxBackendName,
  (read: SettingValues<'backup'>, problems: string[], env: Environment) => OpenWorkspaces | undefined
> = {
  docker(read, problems, env) {
    const tls = readEngineTls(env, problems)
    const { image: copyImage } = sandboxImages(read.SANDLOT_SANDBOX_IMAGE)
    return async (deployment) =>
      createDockerBackend({ deployment, dockerHost: read.DOCKER_HOST, tls, copyImage }).inventory
  },
  kubernetes(read, problems, env) {
    const image = imageProblem(read.SANDLOT_SANDBOX, read.SANDLOT_SANDBOX_IMAGE)
    if (image !== undefined) problems.push(image)
    const copies = { image: read.SANDLOT_SANDBOX_IMAGE ?? '', limits: readLimits(read, problems) }
    const settings = readKubernetes(read, env)
    return async (deployment) => {
      // Others need none of its modules.
      const { createKubernetesBackend } = await import('@sandlot/sandbox/backends/kubernetes/backend')
      return (await createKubernetesBackend({ ...settings, deployment, copies })).inventory
    }
  },
  'local-process': () => undefined,
}

function ownVersion(): string {
  const file = new URL('../package.json', import.meta.url)
  return z.object({ version: z.string() }).parse(JSON.parse(readFileSync(file, 'utf8'))).version
}
