/** Checks of sandboxes: their engine, the gate, and the owners of their volumes. */
import { readFileSync } from 'node:fs'
import { failed, type Finding, ok, unknown } from '@sandlot/shared/base/finding'
import { judgeGate, judgeIsolation, judgeOwnerless, OWNERLESS } from '@sandlot/sandbox/doctor/deployment'
import { examineMachine } from '@sandlot/sandbox/doctor/machine'
import { examineKubernetes } from '@sandlot/sandbox/doctor/cluster'
import { readKubernetes } from '@sandlot/sandbox/backends/kubernetes/settings'
import { SANDBOX_IMAGE } from '@sandlot/sandbox/controller/images'
import { ConfigError, type Environment, readConfig, settingSchema } from '@sandlot/shared/config'
import { imageProblem, SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import { messageOf } from '@sandlot/shared/base/errors'
import { z } from 'zod'
import { recordFile } from '../processes/children.ts'
import { type CliConfig, engineOf } from '../config.ts'
import { deploymentOf, gateSocket } from '../deployment/gate.ts'
import { readRecord } from '../processes/pid-file.ts'
import { isRunning } from '../processes/process-mark.ts'
import { sandboxAdmin } from '../programs/sandbox-admin.ts'
import type { SandboxLimits, SandboxProfile } from '@sandlot/sandbox/backend'
import { readLimits } from '@sandlot/sandbox/controller/limit-settings'

/** Checks the engine, its host, and a sandbox created for the purpose. */
export async function sandboxes(config: CliConfig): Promise<Finding[]> {
  const { isolates, manyHosts, needsEngine } = SANDBOX_BACKENDS[config.backend]
  return [
    ...(isolates ? [] : [judgeIsolation(config.backend)]),
    ...(needsEngine ? [gate(config)] : []),
    await ownerless(config),
    ...(needsEngine || manyHosts ? await configuredSandbox(config, manyHosts) : []),
  ]
}

/** Checks a sandbox with the settings of this deployment, not with the defaults. */
async function configuredSandbox(config: CliConfig, manyHosts: boolean): Promise<Finding[]> {
  const [id, name] = ['settings', 'Settings of sandboxes']
  const problems: string[] = []
  const settings = orProblems(() => readSandboxSettings(config.environment), problems)
  const engine = orProblems(() => engineOf(config), problems)
  const noImage = imageProblem(config.backend, config.sandboxImage)
  if (noImage !== undefined) problems.push(noImage)
  if (noImage !== undefined || settings === undefined || engine === undefined) {
    const fix = 'Correct them in .env or in the environment; docs/settings.md lists the permitted values.'
    return [failed('must', id, name, problems.join('; '), fix)]
  }
  const image = config.sandboxImage ?? SANDBOX_IMAGE
  const examined = manyHosts
    ? examineKubernetes({ ...settings, image, attack: true })
    : examineMachine({ ...settings, ...engine, image })
  return [ok('must', id, name, 'consistent'), ...(await examined)]
}

/** The result of `read`. The problems of a `ConfigError` are added to `problems` instead. */
function orProblems<T>(read: () => T, problems: string[]): T | undefined {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    problems.push(...error.problems)
    return undefined
  }
}

/**
 * Checks in `/proc` that the running agents have only the gate's socket. Required if a gate runs,
 * as nothing else checks their requests; a warning without a gate.
 */
export function gate(config: CliConfig): Finding {
  const [id, name] = ['engine-gate', 'Engine gate']
  const record = readRecord(recordFile(config))
  const agents = Object.entries(record?.children ?? {}).flatMap(([child, mark]) =>
    child.startsWith('ai-agent') && isRunning(mark) ? [mark] : [],
  )
  if (agents.length === 0)
    return unknown('warn', id, name, 'Sandlot is not running; start it to check its processes')
  const running = record?.children['engine-gate']
  const group = running !== undefined && isRunning(running) ? 'must' : 'warn'
  const environments = agents.map(({ pid }) => ({ pid, environment: environmentOf(pid) }))
  const hidden = environments.find(({ environment }) => environment === undefined)
  if (hidden !== undefined)
    return unknown(group, id, name, `the environment of process ${hidden.pid} cannot be read`)
  const hosts = environments.map(({ environment }) => environment?.get('DOCKER_HOST') ?? 'its usual socket')
  const past = hosts.find((host) => host !== `unix://${gateSocket(config)}`)
  return judgeGate(group, past === undefined, past ?? hosts[0] ?? '')
}

/** Undefined for a process of another user, or one that has ended. */
function environmentOf(pid: number): Map<string, string> | undefined {
  try {
    const pairs = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
    return new Map(pairs.map((pair) => [pair.split('=', 1)[0] ?? '', pair.slice(pair.indexOf('=') + 1)]))
  } catch {
    return undefined
  }
}

async function ownerless(config: CliConfig): Promise<Finding> {
  const { id, name } = OWNERLESS
  try {
    if (deploymentOf(config) === undefined)
      return ok('warn', id, name, 'none: Sandlot has not been started here yet')
    const volumes = z.array(z.string()).parse(await sandboxAdmin(['ownerless'], { config }))
    return judgeOwnerless(volumes)
  } catch (error) {
    return unknown('warn', id, name, `they cannot be listed: ${messageOf(error).replace(/\.$/, '')}`)
  }
}

/** Limits and the cluster, which backups read as well; the profile and the runtime, as the gate. */
const schema = settingSchema('backup').extend(settingSchema('engine-gate').shape).omit({ DATABASE_URL: true })

interface SandboxSettings {
  limits: SandboxLimits
  /** Profile of users without one of their own. */
  profile: SandboxProfile
  /** Absent: the engine's own. */
  runtime?: string
  kubernetes: ReturnType<typeof readKubernetes>
}

/** @throws ConfigError with every problem at once. */
function readSandboxSettings(environment: Environment): SandboxSettings {
  const read = readConfig(schema, environment, (path) => readFileSync(path, 'utf8'))
  const problems: string[] = []
  const limits = readLimits(read, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  return {
    limits,
    profile: /(^|,)\s*\*\s*(,|$)/.test(read.SANDLOT_SANDBOX_DEBUG_USERS ?? '') ? 'debug' : 'default',
    runtime: read.SANDLOT_SANDBOX_RUNTIME,
    kubernetes: readKubernetes(read, environment),
  }
}
