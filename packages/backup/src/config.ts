/** Settings of backups. The only file here that reads the environment. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createVolumeCopies, type VolumeCopies } from '@sandlot/sandbox/backends/docker/volume-copies'
import { readEngineTls } from '@sandlot/sandbox/backends/docker/tls-settings'
import { sandboxImages } from '@sandlot/sandbox/controller/images'
import { ConfigError, type Environment, readConfig, wholeNumber } from '@sandlot/shared/config'
import { databaseUrl } from '@sandlot/shared/config/database-url'
import { SANDBOX_BACKEND_NAMES, SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import { z } from 'zod'
import type { PostgresPlace } from './pg-process.ts'

const SHORTEST_PASSPHRASE = 8

const variables = z.object({
  SANDLOT_DATA: z.string().default('./.sandlot'),
  SANDLOT_KEYS_DIR: z.string().optional(),
  DATABASE_URL: databaseUrl,
  SANDLOT_BACKUP_DIR: z.string().optional(),
  SANDLOT_BACKUP_PASSPHRASE: z
    .string()
    .min(SHORTEST_PASSPHRASE, `must have at least ${SHORTEST_PASSPHRASE} characters`)
    .optional(),
  SANDLOT_BACKUP_EVERY_HOURS: wholeNumber(0, 8_760).default(0),
  SANDLOT_BACKUP_KEEP: wholeNumber(1, 10_000).default(7),
  SANDLOT_SANDBOX: z.enum(SANDBOX_BACKEND_NAMES).default('docker'),
  SANDLOT_SANDBOX_IMAGE: z.string().optional(),
  DOCKER_HOST: z.string().optional(),
  DOCKER_CERT_PATH: z.string().optional(),
  DOCKER_TLS_VERIFY: z.string().optional(),
})

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
  volumes: ((deployment: string) => VolumeCopies) | undefined
  version: string
}

/** @throws ConfigError with every problem at once. */
export function readBackupConfig(env: Environment = process.env): BackupConfig {
  const read = readConfig(variables, env, (path) => readFileSync(path, 'utf8'))
  const problems: string[] = []
  const tls = readEngineTls(read, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  const data = resolve(read.SANDLOT_DATA)
  const keys = resolve(read.SANDLOT_KEYS_DIR ?? join(data, 'keys'))
  const { image } = sandboxImages(read.SANDLOT_SANDBOX_IMAGE)
  const { needsEngine } = SANDBOX_BACKENDS[read.SANDLOT_SANDBOX]
  const hours = read.SANDLOT_BACKUP_EVERY_HOURS
  return {
    data,
    keys: keys === join(data, 'keys') ? undefined : keys,
    postgres: read.DATABASE_URL === undefined ? undefined : { url: read.DATABASE_URL, machine: env },
    folder: resolve(read.SANDLOT_BACKUP_DIR ?? join(data, 'backups')),
    passphrase: read.SANDLOT_BACKUP_PASSPHRASE,
    everyMs: hours === 0 ? undefined : hours * 3_600_000,
    keep: read.SANDLOT_BACKUP_KEEP,
    volumes: needsEngine
      ? (deployment) => createVolumeCopies({ deployment, dockerHost: read.DOCKER_HOST, tls, image })
      : undefined,
    version: ownVersion(),
  }
}

function ownVersion(): string {
  const file = new URL('../package.json', import.meta.url)
  return z.object({ version: z.string() }).parse(JSON.parse(readFileSync(file, 'utf8'))).version
}
