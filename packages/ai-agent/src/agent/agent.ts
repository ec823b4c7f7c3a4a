/**
 * One running agent, put together: store, sandboxes, model, tools, sessions. Owns what it opens and
 * closes it.
 */
import { ClientServers } from '../acp/editor/client-servers.ts'
import { type AgentAnswers, answersOf } from './answers.ts'
import { type AgentStores, VERSION, openStores } from './stores.ts'
import { type AgentLifecycle, lifecycleOf } from './lifecycle.ts'
import { type PersonSandboxes, openPersonSandboxes } from './person-sandboxes.ts'
import { makeExternalAccess, openAgentMcp } from './external-access.ts'
import type { Running } from './running.ts'
import { createPolicies } from '../calls/policies/index.ts'
import { type ToolScheduler, createScheduler } from '../calls/scheduler.ts'
import type { AgentConfig } from '../config/config.ts'
import { TEAM, instructionsFor } from '../config/instructions.ts'
import { hasAnyTools, offeredToolsOf } from '../config/tool-offer.ts'
import { PromptQueue } from '../limits/prompt-queue.ts'
import { SandboxQueue } from '../limits/sandbox-queue.ts'
import type { Log } from '../log.ts'
import { RETRY_RULES } from '../loop/retry.ts'
import { SYSTEM_PROMPT } from '../loop/system-prompt.ts'
import { AgentMetrics } from '../metrics/agent-metrics.ts'
import { type ToolMetrics, createToolMetrics } from '../metrics/tool-metrics.ts'
import { openTracing } from '../metrics/tracing.ts'
import { followChanges } from '../replicas/follow-changes.ts'
import { isElsewhere } from '../replicas/ownership.ts'
import { SessionManager } from '../session/manager.ts'
import type { SessionParts, UserParts } from '../session/parts.ts'
import { Retention } from '../session/retention.ts'
import { allowHost } from '../tools/allow-host.ts'
import { endJobs } from '../tools/background/end-jobs.ts'
import { pollJobs } from '../tools/background/ends.ts'
import { builtinTools } from '../tools/builtin/index.ts'
import { type Tool, idOf } from '../tools/tool.ts'
import { countsResume, isToBlame, takeLastEnd } from './last-end.ts'

export type Agent = AgentAnswers & AgentLifecycle

/**
 * Call only while holding the agent's lock. Throws `ConfigError` for what only shows with the
 * stored data. `moreTools` are registered beside the built-in ones. `redact` is called with every
 * secret of a user that is read or set, and those that a client brings with a session: the log must
 * not show them. `hostEnvironment`: as of `ClientServersParts`.
 */
export async function openAgent(
  config: AgentConfig,
  log: Log,
  moreTools: readonly Tool[] = [],
  redact: (secret: string, sessionId?: string) => void = () => undefined,
  hostEnvironment?: Readonly<Record<string, string>>,
): Promise<Agent> {
  const tracing =
    config.tracing === undefined ? undefined : await openTracing({ ...config.tracing, version: VERSION })
  const lastEnd = takeLastEnd(config.ownFolder)
  const stores = await openStores(config, log, {
    tools: [...builtinTools(), ...moreTools].map(idOf),
    redact,
    serversChanged: () => mcp.servers.changed(),
  })
  const { store, replica, rules, offer } = stores
  const sandboxes = await openPersonSandboxes(config, log, stores, tracing)
  const leaving = new AbortController()
  const builtin = [
    ...builtinTools(),
    allowHost(rules, (userId) => sandboxes.network.mayAsk(userId)),
    ...moreTools,
  ]
  const mcp = openAgentMcp(config, log, stores, sandboxes, builtin)
  // Else each starts with the first prompt of a person who has tools.
  if (stores.anyTools()) mcp.servers.start()
  const clientServers = new ClientServers({
    mcp,
    hasTools: (userId) => hasAnyTools(userId, offer),
    redact,
    hostEnvironment,
  })
  const tools = createToolMetrics()
  const prompts = new AgentMetrics(tracing)
  const scheduler = openScheduler(config, tools)
  const runCalls: Running['runCalls'] = (calls, context) => scheduler.run(calls, context)
  const externalAccess = makeExternalAccess(config, sandboxes, mcp)
  // Its order is stored where one process has all prompts.
  const queueRows = replica === undefined ? store.promptQueue : undefined
  const promptQueue = new PromptQueue({
    slots: config.prompts,
    rows: queueRows,
    leaving: leaving.signal,
    log,
  })
  const sandboxQueue = openSandboxQueue(config, log, sandboxes, leaving.signal)
  const manager = new SessionManager(
    sessionParts(config, log, leaving.signal, {
      stores,
      sandboxes,
      clientServers,
      prompts,
      promptQueue,
      sandboxQueue,
      lastEnd,
      runCalls,
      externalAccess,
    }),
  )
  const retention = openRetention(log, stores, manager)
  followOwnership(log, stores, { sandboxes, mcp, manager })
  const running: Running = {
    stores,
    sandboxes,
    builtin,
    mcp,
    clientServers,
    runCalls,
    externalAccess,
    metrics: { tools, prompts, tracing },
    promptQueue,
    manager,
    retention,
    leaving,
  }
  return { ...answersOf(config, log, running), ...lifecycleOf(config, log, running) }
}

function openScheduler(config: AgentConfig, metrics: ToolMetrics): ToolScheduler {
  return createScheduler({
    maxConcurrent: config.maxConcurrentTools,
    results: config.results,
    policies: createPolicies({
      metrics,
      toolTimeoutMs: config.toolTimeoutMs,
      outputLimitBytes: config.outputLimitBytes,
      approvalTtlMs: config.approvalTtlMs,
    }),
  })
}

function openSandboxQueue(
  config: AgentConfig,
  log: Log,
  sandboxes: PersonSandboxes,
  leaving: AbortSignal,
): SandboxQueue {
  return new SandboxQueue({
    limit: config.sandbox.host.sandboxes,
    acquire: (userId, signal) => sandboxes.acquire(userId, signal),
    connected: (userId) => sandboxes.connected(userId),
    queue: new PromptQueue({ slots: 1, leaving, log }),
  })
}

interface ForSessions extends Pick<
  Running,
  'stores' | 'sandboxes' | 'clientServers' | 'runCalls' | 'externalAccess' | 'promptQueue'
> {
  prompts: AgentMetrics
  sandboxQueue: SandboxQueue
  lastEnd: ReturnType<typeof takeLastEnd>
}

function sessionParts(config: AgentConfig, log: Log, leaving: AbortSignal, parts: ForSessions): SessionParts {
  const { stores, sandboxes, clientServers, prompts, promptQueue, sandboxQueue, lastEnd } = parts
  const { store, replica, ownership, people, removals, rules, secrets, models, personal, offer } = stores
  return {
    store,
    ownership,
    models,
    prompts: { system: SYSTEM_PROMPT, retry: RETRY_RULES, namesChats: true },
    calls: {
      tools: offeredToolsOf((...asked) => clientServers.toolsOf(...asked), offer),
      runCalls: parts.runCalls,
      sandbox: (userId, signal, waiting) => sandboxQueue.acquire(userId, signal, waiting),
      rules,
      externalAccess: parts.externalAccess,
      secrets,
    },
    users: {
      instructions: instructionsOf(config, stores, sandboxes, log),
      isRemoved: (userId) => removals.has(userId),
      modeCeilingOf: (userId) => personal.of(userId).modeCeiling,
      modelsOf: (userId) => personal.of(userId).models,
      limitsOf: stores.limitsOf,
      teamsOf: (userId) => people.get(userId)?.teams,
      membersOf: (teamId) =>
        [...people.all].flatMap(([id, { teams }]) => (teams.includes(teamId) ? [id] : [])),
    },
    jobs: {
      poll: pollJobs(sandboxes),
      portsOf: async (userId) => (await (await sandboxes.connected(userId))?.ports.list()) ?? [],
      end: endJobs(sandboxes),
    },
    restarts: {
      resumeCounts: (promptId, userId) => replica?.countsResume(userId) ?? countsResume(lastEnd, promptId),
      blockedAgent: (promptId) => isToBlame(lastEnd, promptId),
      resumesAfter: (error) => replica?.resumesAfter(error) === true,
    },
    metrics: prompts,
    promptQueue,
    leaving,
    now: Date.now,
    log,
  }
}

function instructionsOf(
  config: AgentConfig,
  { store, personal, rules }: AgentStores,
  sandboxes: PersonSandboxes,
  log: Log,
): UserParts['instructions'] {
  return (userId, sessionId) =>
    instructionsFor(userId, {
      deployment: config.instructions,
      ofUser: (id) => store.people.instructions.get(id),
      ofTeam: () => store.people.instructions.get(TEAM),
      set: personal.of(userId).instructions,
      project: store.chats.projectOf(userId, sessionId),
      workspace: {
        awake: (id) => sandboxes.connected(id),
        rows: store.people.instructions,
        rulesOf: (id) => rules.of(id),
        now: Date.now,
        log,
      },
    })
}

function openRetention(log: Log, { ownership, store }: AgentStores, manager: SessionManager): Retention {
  return new Retention({
    leads: () => ownership.leads(),
    isElsewhere: isElsewhere(ownership, store.replicas),
    rows: store.admin.retention,
    audit: store.admin.audit,
    isOpen: (sessionId) => manager.removal.isOpen(sessionId),
    expire: (chat) => manager.removal.expire(chat),
    release: (sessionId) => manager.removal.release(sessionId),
    now: Date.now,
    log,
  })
}

/** Follows changes that other replicas make, and ends what a lost user has here. */
function followOwnership(
  log: Log,
  { store, ownership, people, removals, models, servers, personal }: AgentStores,
  { sandboxes, mcp, manager }: Pick<Running, 'sandboxes' | 'mcp' | 'manager'>,
): void {
  followChanges(ownership, {
    people,
    settings: personal,
    models,
    servers,
    removals,
    forgetRules: () => store.forgetRules(),
    removedPeople: () => store.people.known.removed(),
    recheck: (userId) => manager.shares.recheckUser(userId),
  })
  ownership.onChange('room', async () => void (await sandboxes.stopLongestIdle()))
  ownership.onLost((userId) => {
    store.forgetRules()
    mcp.servers
      .closeUser(userId)
      .catch((err: unknown) => log.warn({ err, userId }, 'MCP servers of a user could not be stopped'))
  })
}
