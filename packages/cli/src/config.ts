import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import type { EngineTls } from '@sandlot/sandbox/backends/docker/connection'
import { type EngineTlsVariables, readEngineTls } from '@sandlot/sandbox/backends/docker/tls-settings'
import { ConfigError, type Environment, readConfig, settingRows, settingSchema } from '@sandlot/shared/config'
import { settingNames } from '@sandlot/shared/config/settings'
import { testBackendProblem, type SandboxBackendName } from '@sandlot/shared/config/sandbox-backends'
import type { OtherSettings } from '@sandlot/shared/admin/configuration'
import { z } from 'zod'
import { namesFor } from './processes/child-env.ts'

/** The checkout of this launcher. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')

/** Settings of the launcher. Each process reads its own. */
export interface CliConfig {
  root: string
  /** Absolute. */
  data: string
  /** Absolute: the folder of keys. */
  keys: string
  /** Address on which the service listens. */
  host: string
  port: number
  dockerHost: string | undefined
  /**
   * For an engine behind TLS. Only commands that need the engine read the files that these name.
   */
  tls: EngineTlsVariables
  backend: SandboxBackendName
  /** The operator's own image; undefined: ours. */
  sandboxImage: string | undefined
  /** API key of the user in whose sandbox `exec` runs. */
  apiKey: string | undefined
  testSeed: number | undefined
  backups: {
    scheduled: boolean
    /** A passphrase is set; only the backup program reads it. */
    hasPassphrase: boolean
  }
  /** Environment with `.env`, for child processes. */
  environment: Environment
  ci: boolean
}

/**
 * Reads the configuration. Relative paths are relative to the checkout.
 * @throws ConfigError naming every problem, unknown settings included.
 */
export function parseCliConfig(environment: Environment, root: string = ROOT): CliConfig {
  // Only the backup program reads the passphrase: a short one must not prevent `down`.
  const schema = settingSchema('launcher').extend({ SANDLOT_BACKUP_PASSPHRASE: z.string().optional() })
  const values = readConfig(schema, environment, (path) => readFileSync(path, 'utf8'))
  const problem = testBackendProblem(values.SANDLOT_SANDBOX, values.SANDLOT_TEST_LOCAL_PROCESS)
  if (problem !== undefined) throw new ConfigError([problem])
  // Only the service alone takes any free port: the launcher has to find it.
  if (values.PORT === 0) throw new ConfigError(['PORT: must be at least 1'])
  const data = resolve(root, values.SANDLOT_DATA)
  const given = values.SANDLOT_KEYS_DIR === undefined ? undefined : resolve(root, values.SANDLOT_KEYS_DIR)
  const keys = given ?? join(data, 'keys')
  return {
    root,
    data,
    keys,
    host: values.HOST,
    port: values.PORT,
    dockerHost: values.DOCKER_HOST,
    tls: {
      DOCKER_CERT_PATH: environment['DOCKER_CERT_PATH'],
      DOCKER_TLS_VERIFY: environment['DOCKER_TLS_VERIFY'],
    },
    backend: values.SANDLOT_SANDBOX,
    sandboxImage: values.SANDLOT_SANDBOX_IMAGE,
    apiKey: values.SANDLOT_API_KEY,
    testSeed: values.SANDLOT_TEST_SEED,
    backups: {
      scheduled: values.SANDLOT_BACKUP_EVERY_HOURS > 0,
      hasPassphrase: values.SANDLOT_BACKUP_PASSPHRASE !== undefined,
    },
    environment: { ...environment, SANDLOT_DATA: data, SANDLOT_KEYS_DIR: given },
    ci: environment['CI'] === 'true',
  }
}

/**
 * Address and TLS settings of the engine.
 * @throws ConfigError for certificates that are set and cannot be read.
 */
export function engineOf(config: Pick<CliConfig, 'dockerHost' | 'tls'>): {
  dockerHost?: string
  tls?: EngineTls
} {
  const { dockerHost } = config
  const problems: string[] = []
  const tls = readEngineTls(config.tls, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  return { dockerHost, tls }
}

/** Reads this process's environment, then `.env` of the checkout for what it lacks. */
export function loadCliConfig(): CliConfig {
  const file = join(ROOT, '.env')
  const added = existsSync(file)
    ? Object.keys(parseEnv(readFileSync(file, 'utf8'))).filter((name) => process.env[name] === undefined)
    : []
  if (added.length > 0) process.loadEnvFile(file)
  const environment = { ...process.env, SANDLOT_ENV_FILE_NAMES: added.join(',') }
  return parseCliConfig({
    ...environment,
    SANDLOT_OTHER_SETTINGS: JSON.stringify(otherSettings(environment)),
  })
}

/** Settings that neither the service nor the agent reads, for the configuration page. */
export function otherSettings(environment: Environment): OtherSettings {
  const shown = new Set([...namesFor('service'), ...namesFor('ai-agent')])
  const rows = (names: readonly string[]): OtherSettings[number]['settings'] => {
    const own = names.filter((name) => !shown.has(name))
    for (const name of own) shown.add(name)
    return settingRows(own, environment)
  }
  // The agent's is the gate's address.
  shown.delete('DOCKER_HOST')
  return [
    { process: 'engine-gate', settings: rows(namesFor('engine-gate')) },
    { process: 'backup', settings: rows(namesFor('backup')) },
    { process: 'launcher', settings: rows(settingNames('launcher')) },
  ]
}
