/** Settings of the agent. The only file here that reads the environment. */
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { readKeysFolder } from '@sandlot/shared/node/secret-file'
import { type Environment, ConfigError, readConfig, settingRows, settingSchema } from '@sandlot/shared/config'
import { type SettingValues, settingNames } from '@sandlot/shared/config/settings'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { SettingRow } from '@sandlot/shared/admin/configuration'
import { PERSON_TOOLS } from '@sandlot/shared/account/agent-settings'
import type { SandboxLimits, SandboxProfile } from '@sandlot/sandbox/backend'
import { readEngineTls } from '@sandlot/sandbox/backends/docker/tls-settings'
import { readKubernetes } from '@sandlot/sandbox/backends/kubernetes/settings'
import { type SandboxImages, sandboxImages } from '@sandlot/sandbox/controller/images'
import { readLimits } from '@sandlot/sandbox/controller/limit-settings'
import type { HostOptions } from '@sandlot/sandbox/controller/host-guard'
import {
  imageProblem,
  SANDBOX_BACKENDS,
  testBackendProblem,
  type SandboxBackendName,
} from '@sandlot/shared/config/sandbox-backends'
import { type ConfigFile, readConfigFile, sectionRows } from './file.ts'
import { type LimitSettings, limitsCost, readBudgets } from '../limits/settings.ts'
import { type ModelsSettings, readModels, unpriced } from '../model/settings.ts'
import { operatorFiles } from './folder.ts'
import { type ServerSpec, readServerSpecs } from '../mcp/server-spec.ts'
import { type AgentAddress, type AgentListen, readListen } from './listen.ts'
import { type UnavailableServer, shippedServers } from '../mcp/shipped-servers.ts'
import { type DeploymentInstructions, readInstructions } from './instructions.ts'
import { normalKey } from '../people/person-key.ts'
import { unknownToolProblems } from './tool-offer.ts'
import type { ResultLimits } from '../tools/output/truncate-output.ts'
import { type NetworkConfig, readNetwork } from './network.ts'

const MiB = 1024 * 1024
/** Free inodes of the host below which no sandbox may write. */
const FREE_INODES = 10_000

/** Longest path of a Unix socket, in bytes, without the terminating zero. */
const SOCKET_PATH_BYTES = 107

const variables = settingSchema('ai-agent')

interface BackendSettings {
  backend: SandboxBackendName
  dockerHost: string | undefined
  tls: { ca: Buffer; cert: Buffer; key: Buffer } | undefined
  /** Without the deployment’s id. */
  kubernetes: ReturnType<typeof readKubernetes>
  images: SandboxImages
}

interface SandboxConfig extends BackendSettings {
  limits: SandboxLimits
  host: HostOptions
  runtime: string | undefined
  /** The profile of users not in `debugUsers`. */
  profile: SandboxProfile
  /** User ids, and e-mail addresses in small letters. */
  debugUsers: ReadonlySet<string>
  /** Warm sandboxes to keep. */
  pool: number | 'auto'
  idle: { pauseAfterMs: number; stopAfterMs: number }
  network: NetworkConfig
}

export interface AgentConfig {
  logLevel: string
  /** Absolute. */
  dataFolder: string
  /** Absolute; the same for all agents of a deployment. */
  keysFolder: string
  /**
   * The folder of this one of several agents: a name in `dataFolder` where one is set, else
   * `dataFolder`.
   */
  ownFolder: string
  /** Id of this one of several agents on PostgreSQL. Undefined: none is set. */
  replica: string | undefined
  /** Path of `sessions.db`, or address of PostgreSQL. */
  database: string
  /** The mode of the file. */
  sessionsMode: 0o600 | 0o640
  /** The id that the engine gate lets through; undefined: one of our own. */
  deployment: string | undefined
  /** Path of the Unix socket. */
  socket: string
  /** A further listener. Undefined: none. */
  listen: AgentListen | undefined
  /** The address for services. */
  address: AgentAddress
  /** Undefined: the demo model answers. */
  models: ModelsSettings | undefined
  /** Limits of models of endpoints that are added later. */
  modelSilence: ModelsSettings['silence']
  defaultMode: Mode
  toolsEnabled: boolean
  toolTimeoutMs: number
  maxConcurrentTools: number
  /** Prompts that run at once; undefined: no limit. */
  prompts: number | undefined
  limits: LimitSettings
  /** Limits of one result for the model. */
  results: ResultLimits
  outputLimitBytes: number
  /** The most bytes that one person's chats may store. */
  storeBytes: number
  approvalTtlMs: number
  sandbox: SandboxConfig
  /** MCP servers, with what they need of the environment. */
  mcpServers: readonly ServerSpec[]
  /** Servers of ours that are not on, and what to set. */
  unavailableServers: readonly UnavailableServer[]
  /** The address people type, for links back to us. */
  publicUrl: string
  /** Structured configuration. */
  file: ConfigFile
  /** All of it for people, with where each value comes from. */
  settings: readonly SettingRow[]
  /** Instructions of the operator and the team for every session. */
  instructions: DeploymentInstructions
  /** The environment of programs that an editor has us start: as if the editor had started them. */
  ownEnvironment: Readonly<Record<string, string>>
  /** The target of spans. Undefined: none are made. */
  tracing: { endpoint: string; serviceName: string } | undefined
  /** Values that must never appear in a log. */
  secrets: readonly string[]
}

/** Places of sandboxes and of their ledger. */
export interface BackendConfig extends Pick<
  AgentConfig,
  'dataFolder' | 'keysFolder' | 'database' | 'sessionsMode' | 'deployment'
> {
  sandbox: BackendSettings
}

/** Nothing of it is ours, and nothing of it is a secret. */
const OWN_ENVIRONMENT = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'TERM', 'TMPDIR']

/** `toolNames`: the built-in tools there are. @throws ConfigError with every problem at once. */
export function readAgentConfig(
  toolNames: readonly string[],
  environment: Environment = process.env,
): AgentConfig {
  const problems: string[] = []
  const { env, configFile, required, beside } = operatorFiles(environment, problems)
  const read = readConfig(variables, env, (path) => readFileSync(path, 'utf8'))

  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = read
  const { OPENAI_API_KEY: apiKey } = read
  problems.push(...unnamedModelProblems(read))

  const places = readPlaces(read, problems)
  const refused = testBackendProblem(read.SANDLOT_SANDBOX, read.SANDLOT_TEST_LOCAL_PROCESS)
  if (refused !== undefined) problems.push(refused)
  problems.push(...manyHostsProblems(read, env))
  const listen = readListen(read, problems)
  const backend = readBackend(read, env, problems)
  const allToolNames = [...toolNames, ...PERSON_TOOLS]
  const limits = readLimits(read, problems)
  const file = readConfigFile(configFile, required, problems)
  const named = { ...placed('users', file.users), ...placed('teams', file.teams) }
  problems.push(...unknownToolProblems(file.tools, named, allToolNames))
  const network = readNetwork(read, problems)
  const instructions = readInstructions(file.instructions, dirname(configFile), problems)
  const mcp = readMcpServers(env, file, problems)
  const budgets = readBudgets(read, file.limits)
  const modelSilence = {
    idleMs: read.SANDLOT_MODEL_IDLE_SECONDS * 1_000,
    progressMs: read.SANDLOT_MODEL_IDLE_SECONDS * 2_000,
  }
  const models = readModelEndpoints(read, file, modelSilence, budgets, problems)
  if (problems.length > 0) throw new ConfigError(problems)

  return {
    logLevel: read.LOG_LEVEL,
    ...places,
    listen,
    models,
    modelSilence,
    defaultMode: read.SANDLOT_DEFAULT_MODE,
    toolsEnabled: read.SANDLOT_TOOLS_ENABLED,
    ...readCallLimits(read),
    limits: budgets,
    sandbox: readSandbox(read, { ...backend, limits, network }),
    mcpServers: mcp.servers,
    unavailableServers: mcp.unavailable,
    tracing: endpoint === undefined ? undefined : { endpoint, serviceName: read.OTEL_SERVICE_NAME },
    publicUrl: read.SANDLOT_PUBLIC_URL ?? `http://127.0.0.1:${read.PORT}`,
    file,
    settings: [...settingRows(settingNames('ai-agent'), env, beside), ...sectionRows(file, configFile)],
    instructions,
    ownEnvironment: Object.fromEntries(
      OWN_ENVIRONMENT.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
    ),
    secrets: [
      ...modelKeys(apiKey, models),
      ...secretsOf(network),
      ...(listen?.token === undefined ? [] : [listen.token]),
      ...mcp.secrets,
    ],
  }
}

/**
 * The part of the configuration that finds sandboxes; nothing else of it is read, so that sandboxes
 * can be stopped whatever is wrong with the rest. @throws ConfigError with every problem at once.
 */
export function readBackendConfig(environment: Environment = process.env): BackendConfig {
  const problems: string[] = []
  const { env } = operatorFiles(environment, problems)
  const read = readConfig(variables.pick(BACKEND_SETTINGS), env, (path) => readFileSync(path, 'utf8'))
  const { dataFolder, keysFolder, database, sessionsMode, deployment } = readPlaces(read, problems)
  const sandbox = readBackend(read, env, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  return { dataFolder, keysFolder, database, sessionsMode, deployment, sandbox }
}

const BACKEND_SETTINGS = {
  SANDLOT_DATA: true,
  SANDLOT_KEYS_DIR: true,
  SANDLOT_DEPLOYMENT: true,
  SANDLOT_REPLICA: true,
  SANDLOT_SESSIONS_DB_MODE: true,
  DATABASE_URL: true,
  DOCKER_HOST: true,
  SANDLOT_SANDBOX: true,
  SANDLOT_SANDBOX_IMAGE: true,
  SANDLOT_KUBERNETES_NAMESPACE: true,
  SANDLOT_KUBERNETES_KUBECONFIG: true,
  SANDLOT_KUBERNETES_STORAGE_CLASS: true,
  SANDLOT_KUBERNETES_MEMORY_REQUEST: true,
  SANDLOT_KUBERNETES_PULL_SECRET: true,
  SANDLOT_KUBERNETES_USER_NAMESPACES: true,
  SANDLOT_KUBERNETES_NETWORK_DOWN: true,
  SANDLOT_KUBERNETES_STREAM_MB: true,
} as const

type Read = SettingValues<'ai-agent'>
type BackendRead = Pick<Read, keyof typeof BACKEND_SETTINGS>

function unnamedModelProblems(read: Read): string[] {
  const { OPENAI_MODEL: name, OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey } = read
  if (name !== undefined || (baseUrl === undefined && apiKey === undefined)) return []
  const set = baseUrl === undefined ? 'OPENAI_API_KEY' : 'OPENAI_BASE_URL'
  return [
    `OPENAI_MODEL: not set although ${set} is; name the model, for example OPENAI_MODEL=gpt-5 (or unset ${set} for the demo model)`,
  ]
}

/** Folders, database and socket of this process. */
function readPlaces(read: BackendRead, problems: string[]) {
  const dataFolder = resolve(read.SANDLOT_DATA)
  const keysFolder = readKeysFolder(dataFolder, read.SANDLOT_KEYS_DIR, 'deployment.json', problems)
  const replica = read.DATABASE_URL === undefined ? undefined : read.SANDLOT_REPLICA
  const socket = join(dataFolder, 'run', replica === undefined ? 'agent.sock' : `agent-${replica}.sock`)
  if (Buffer.byteLength(socket) > SOCKET_PATH_BYTES) {
    problems.push(
      `SANDLOT_DATA: ${dataFolder} is too long; the socket below it may have ${SOCKET_PATH_BYTES} bytes in its path`,
    )
  }
  return {
    dataFolder,
    keysFolder,
    ownFolder: replica === undefined ? dataFolder : join(dataFolder, 'replicas', replica),
    replica,
    database: read.DATABASE_URL ?? join(dataFolder, 'sessions.db'),
    sessionsMode: read.SANDLOT_SESSIONS_DB_MODE === '0640' ? 0o640 : 0o600,
    deployment: read.SANDLOT_DEPLOYMENT,
    socket,
    address: { url: `ws+unix://${socket}:/acp` },
  } as const
}

function readMcpServers(env: Environment, file: ConfigFile, problems: string[]) {
  const secrets: string[] = []
  const shipped = shippedServers(env, file.mcpServers ?? {})
  const servers = readServerSpecs(
    { ...shipped.servers, ...file.mcpServers },
    { env, readFile: (path) => readFileSync(path, 'utf8') },
    problems,
    secrets,
  )
  return { servers, unavailable: shipped.unavailable, secrets }
}

function readCallLimits(read: Read) {
  return {
    toolTimeoutMs: read.SANDLOT_TOOL_TIMEOUT_MS,
    maxConcurrentTools: read.SANDLOT_MAX_CONCURRENT_TOOLS,
    prompts: read.SANDLOT_HOST_PROMPTS === 0 ? undefined : read.SANDLOT_HOST_PROMPTS,
    results: { chars: read.SANDLOT_RESULT_CHARS, lines: read.SANDLOT_RESULT_LINES },
    outputLimitBytes: read.SANDLOT_OUTPUT_LIMIT,
    storeBytes: read.SANDLOT_STORE_MB * MiB,
    approvalTtlMs: read.SANDLOT_APPROVAL_TTL * 1_000,
  }
}

/** Undefined: the demo model. */
function readModelEndpoints(
  read: Read,
  file: ConfigFile,
  silence: AgentConfig['modelSilence'],
  budgets: LimitSettings,
  problems: string[],
): AgentConfig['models'] {
  const { OPENAI_MODEL: name, OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey } = read
  if (name === undefined) return undefined
  const models = readModels(
    { baseUrl: baseUrl ?? 'https://api.openai.com/v1', apiKey: apiKey ?? '', name },
    file,
    (path) => readFileSync(path, 'utf8'),
    problems,
  )
  if (limitsCost(budgets.written.everybody, budgets.total, ...budgets.written.users.values()))
    problems.push(...unpriced([models.main, ...models.choices, ...models.fallbacks]))
  return { ...models, silence }
}

function readBackend(read: BackendRead, env: Environment, problems: string[]): BackendSettings {
  return {
    backend: read.SANDLOT_SANDBOX,
    dockerHost: read.DOCKER_HOST,
    tls: readEngineTls(env, problems),
    kubernetes: readKubernetes(read, env),
    images: sandboxImages(read.SANDLOT_SANDBOX_IMAGE),
  }
}

function readSandbox(
  read: Read,
  checked: BackendSettings & Pick<SandboxConfig, 'limits' | 'network'>,
): SandboxConfig {
  const debugUsers = new Set(namesIn(read.SANDLOT_SANDBOX_DEBUG_USERS ?? '').map(normalKey))
  return {
    host: readHost(read),
    runtime: read.SANDLOT_SANDBOX_RUNTIME,
    profile: debugUsers.delete('*') ? 'debug' : 'default',
    debugUsers,
    pool: read.SANDLOT_SANDBOX_POOL,
    idle: {
      pauseAfterMs: read.SANDLOT_SANDBOX_PAUSE_AFTER_MS,
      stopAfterMs: read.SANDLOT_SANDBOX_STOP_AFTER_MS,
    },
    ...checked,
  }
}

function modelKeys(apiKey: string | undefined, models: AgentConfig['models']): string[] {
  const others = [...(models?.choices ?? []), ...(models?.fallbacks ?? [])]
  return [
    ...(apiKey === undefined ? [] : [apiKey]),
    ...others.map((model) => model.apiKey).filter((key) => key !== ''),
  ]
}

/** Settings for people, by their place in the file. */
function placed<S>(section: string, settings: Readonly<Record<string, S>> = {}): Record<string, S> {
  return Object.fromEntries(Object.entries(settings).map(([key, set]) => [`${section}.${key}`, set]))
}

function secretsOf(network: NetworkConfig): string[] {
  return Object.values(network.egress.credentials).map(({ value }) => value)
}

function namesIn(list: string): string[] {
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

const OF_ONE_HOST = ['SANDLOT_HOST_MEMORY_MB', 'SANDLOT_HOST_DISK_FREE_MB']

function manyHostsProblems({ SANDLOT_SANDBOX: name, ...read }: Read, env: Environment): string[] {
  const image = imageProblem(name, read.SANDLOT_SANDBOX_IMAGE)
  const isSet = (setting: string): boolean => SANDBOX_BACKENDS[name].manyHosts && (env[setting] ?? '') !== ''
  const limit = (setting: string): string =>
    `${setting}: a limit of one host, which SANDLOT_SANDBOX=${name} does not have; unset it, and set a quota on the cluster`
  return [...(image === undefined ? [] : [image]), ...OF_ONE_HOST.filter(isSet).map(limit)]
}

/** Limits of the host. 0 in a setting is none. */
function readHost(read: Read): HostOptions {
  const sandboxes = read.SANDLOT_HOST_SANDBOXES === 0 ? {} : { sandboxes: read.SANDLOT_HOST_SANDBOXES }
  if (SANDBOX_BACKENDS[read.SANDLOT_SANDBOX].manyHosts) return sandboxes
  return {
    ...sandboxes,
    ...(read.SANDLOT_HOST_MEMORY_MB === 0 ? {} : { memoryBytes: read.SANDLOT_HOST_MEMORY_MB * MiB }),
    diskFloor: {
      bytes: read.SANDLOT_HOST_DISK_FREE_MB * MiB,
      files: read.SANDLOT_HOST_DISK_FREE_MB === 0 ? 0 : FREE_INODES,
    },
  }
}
