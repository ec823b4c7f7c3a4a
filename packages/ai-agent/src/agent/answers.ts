/** The parts of a running agent that answer clients and operators. */
import { join } from 'node:path'
import type { AgentStatus } from '@sandlot/shared/acp/meta'
import type { RemovedData } from '@sandlot/shared/account/api'
import { FULL_IMAGE_FILE } from '@sandlot/shared/config/full-image'
import { lowerMode } from '@sandlot/shared/chat/mode'
import { freeBytes } from '@sandlot/storage/database/free-bytes'
import { ByteStreams } from '../acp/byte-streams.ts'
import { agentChecks } from '../acp/checks.ts'
import type { AgentOverview } from '@sandlot/shared/admin/overview'
import type { AcpServerParts, Administration, ShellParts } from '../acp/parts.ts'
import { createAcpServer } from '../acp/server.ts'
import { makeStatus } from '../acp/status.ts'
import type { AgentConfig } from '../config/config.ts'
import type { Log } from '../log.ts'
import { pageRow } from '../config/file.ts'
import { mayUse, offeredTools } from '../config/tool-offer.ts'
import { type ToolListing, listedTools, unavailableServers, unknownServers } from '../config/tool-listing.ts'
import { Execs } from '../workspace/exec.ts'
import { budgetsOf } from '../limits/budget-view.ts'
import { spentOf } from '../limits/period-budgets.ts'
import { modelsOf } from '../loop/model-choice.ts'
import { ServerAdmin } from '../mcp/server-admin.ts'
import { toolStatsView } from '../metrics/tool-stats-view.ts'
import { Terminals } from '../workspace/terminals.ts'
import { PersonJobs } from '../tools/background/person-jobs.ts'
import { idOf } from '../tools/tool.ts'
import { VERSION } from './stores.ts'
import type { Running } from './running.ts'

/** Milliseconds that a list of tools waits for MCP servers. */
const LIST_MS = 10_000
/** The user whose MCP servers an operator sees: those of the deployment, which everybody has. */
const LOCAL_USER_ID = 'local'

export interface AgentAnswers {
  readonly model: { name: string; demo: boolean }
  /** The number of our own checked tools; 0 where none is offered. Servers add theirs later. */
  readonly tools: number
  /** Serve one client. */
  serve: ReturnType<typeof createAcpServer>
  streams: ByteStreams
  status: () => Promise<AgentStatus>
  /** The tools there are and how the MCP servers stand, for the operator. */
  listTools: () => Promise<ToolListing>
}

export function answersOf(config: AgentConfig, log: Log, running: Running): AgentAnswers {
  const { stores, sandboxes, builtin, leaving } = running
  const startedAt = Date.now()
  const status = statusOf(config, running)
  const streams = new ByteStreams()
  const terminals = new Terminals({
    acquire: (userId) => sandboxes.acquire(userId, leaving.signal),
    connected: (userId) => sandboxes.connected(userId),
    status: (userId) => sandboxes.status(userId),
    leaving: leaving.signal,
    audit: (line) => stores.audit.write(line),
    log,
    now: Date.now,
  })
  const execs = new Execs({
    runCalls: running.runCalls,
    sandbox: (userId, signal) => sandboxes.acquire(userId, signal),
    rules: stores.rules,
    externalAccess: running.externalAccess,
    leaving: leaving.signal,
    audit: (line) => stores.audit.write(line),
    log,
    now: Date.now,
  })
  stores.ownership.onLost((userId) => {
    terminals.forget(userId)
    sandboxes.watches.forget(userId)
  })
  const serve = createAcpServer(
    serverParts(config, log, running, { startedAt, status, streams, terminals, execs }),
  )
  const offeredToAll = builtin.filter(({ runs }) => runs?.offeredTo?.(LOCAL_USER_ID) !== false)
  return {
    model: stores.models.view.main,
    tools: stores.anyTools() ? offeredToAll.length : 0,
    serve,
    streams,
    status,
    listTools: () => listTools(config, running),
  }
}

function statusOf(config: AgentConfig, { stores, sandboxes, metrics }: Running): () => Promise<AgentStatus> {
  return makeStatus({
    models: stores.models,
    defaultMode: config.defaultMode,
    toolsEnabled: config.toolsEnabled,
    probeSandboxes: () => sandboxes.probe(),
    storeProblem: () => stores.store.problem(),
    modelReasons: (names) => metrics.prompts.health.reasons(names),
    freeBytes: () => freeBytes(config.dataFolder),
    fullImageFile: join(config.dataFolder, FULL_IMAGE_FILE),
  })
}

/** The parts that only requests use. */
interface RequestParts {
  startedAt: number
  status: () => Promise<AgentStatus>
  streams: ByteStreams
  terminals: Terminals
  execs: Execs
}

function serverParts(
  config: AgentConfig,
  log: Log,
  running: Running,
  requests: RequestParts,
): AcpServerParts {
  const { stores, sandboxes, mcp, clientServers, metrics, manager, retention, leaving } = running
  const { store, people, removals, rules, secrets, models, servers, personal } = stores
  return {
    manager,
    ownership: stores.ownership,
    shell: shellParts(config, running, requests),
    defaultMode: config.defaultMode,
    get takesImages() {
      return modelsOf(models).some(({ images }) => images === true)
    },
    models,
    administration: administrationParts(config, running, requests.startedAt),
    mcpServers: new ServerAdmin({
      registry: servers,
      servers: mcp.servers,
      signIns: mcp.signIns,
      withheld: (userId) => personal.of(userId).withheldServers,
      unavailable: config.unavailableServers,
    }),
    finishSignIn: (userId, answer) => mcp.finishSignIn(userId, answer),
    secrets,
    rulesOf: (userId) => rules.of(userId),
    watches: sandboxes.watches,
    workspace: async (userId) => (await sandboxes.acquire(userId, leaving.signal)).files,
    clientServers,
    metrics: () => metrics.prompts.scrape(metrics.tools),
    audit: store.admin.audit,
    retention,
    instructions: store.people.instructions,
    projects: store.chats,
    configuredInstructions: config.instructions,
    userSeen(user) {
      if (removals.has(user.id) || !people.record(user)) return
      personal.claim(user.id)
      manager.shares.recheckUser(user.id)
    },
    settings: personal,
    budgetsOf(userId) {
      const now = Date.now()
      const { warnAt } = config.limits
      return budgetsOf(stores.limitsOf(userId).budgets, spentOf(store.usage, userId, now), { now, warnAt })
    },
    removePerson: (...asked) => removePerson(log, running, ...asked),
    modeCeilingOf: (userId, said) => lowerMode(personal.of(userId).modeCeiling, said),
    status: requests.status,
    overview: () => overviewOf(config, running),
    checks: () =>
      agentChecks({
        config,
        model: models.view.main.demo ? undefined : models.view.main.name,
        ownerless: async () =>
          (await sandboxes.workspaces()).flatMap(({ owner, volume }) => (owner === 'nobody' ? [volume] : [])),
      }),
    version: VERSION,
    log,
  }
}

function shellParts(
  config: AgentConfig,
  { stores: { store, offer }, sandboxes }: Running,
  { terminals, execs, streams }: RequestParts,
): ShellParts {
  return {
    terminals,
    execs,
    connected: (userId) => sandboxes.connected(userId),
    sandboxAdmin: {
      sandboxes,
      starting: sandboxes.starting,
      jobs: new PersonJobs({ store, connected: (userId) => sandboxes.connected(userId), now: Date.now }),
      limits: config.sandbox.limits,
    },
    streams,
    mayUse: (userId, what) => mayUse(userId, what, offer),
  }
}

function administrationParts(
  config: AgentConfig,
  { stores: { rules, models, servers, offer }, builtin, metrics }: Running,
  startedAt: number,
): Administration {
  return {
    toolStats() {
      const offered = new Set(offeredTools('', builtin, { ...offer, personal: undefined }).map(idOf))
      const own = builtin.map((tool) => [idOf(tool), offered.has(idOf(tool)) ? 'on' : 'off'] as const)
      return toolStatsView({ metrics: metrics.tools, builtin: new Map(own), since: startedAt })
    },
    rules,
    settings: async () => [
      ...config.settings,
      pageRow('rules for everybody', (await rules.everybodys()).length),
      pageRow('model endpoints', models.view.endpoints.length),
      pageRow('MCP servers', servers.list('deployment', '').length),
    ],
  }
}

async function removePerson(
  log: Log,
  { stores: { store, audit, people, removals, personal }, sandboxes, mcp, manager }: Running,
  userId: string,
  data: RemovedData,
  handOver?: string,
): Promise<void> {
  await removals.remove(userId, data, {
    rows: store.people.known,
    endSessions: (id, what) => manager.removal.endAllOf(id, what, handOver),
    audit: (line) => audit.write(line),
    endServers: (id, what) => mcp.removeUser(id, what),
    removeSandbox: (id, what) => sandboxes.remove(id, what),
    now: Date.now,
  })
  people.forget(userId)
  personal.forget(userId)
  log.info({ userId, data }, 'a person was removed')
}

async function overviewOf(
  config: AgentConfig,
  { promptQueue, sandboxes }: Running,
): Promise<Omit<AgentOverview, 'prompts'>> {
  return {
    version: VERSION,
    promptLimit: promptQueue.slots,
    sandboxes: {
      ...(await sandboxes.facts()),
      limit: config.sandbox.host.sandboxes,
      memoryLimitMb: inMiB(config.sandbox.host.memoryBytes),
      image: await sandboxes.imageName(),
    },
    freeBytes: freeBytes(config.dataFolder),
  }
}

async function listTools(config: AgentConfig, { stores, mcp, builtin }: Running): Promise<ToolListing> {
  const patience = AbortSignal.timeout(LIST_MS)
  const start = stores.anyTools()
  const all = start ? (await mcp.servers.toolsOf(LOCAL_USER_ID, patience)).listTools() : builtin
  const states = start
    ? await mcp.servers.states(LOCAL_USER_ID, patience)
    : unknownServers(config, 'started once a person has tools')
  const offered = offeredTools(LOCAL_USER_ID, all, { ...stores.offer, personal: undefined })
  return {
    running: true,
    tools: listedTools(all, offered),
    servers: [...states, ...unavailableServers(config)],
  }
}

function inMiB(bytes: number | undefined): number | undefined {
  return bytes === undefined ? undefined : Math.floor(bytes / 1024 / 1024)
}
