/**
 * One running agent, put together: store, sandboxes, model, tools, sessions. Owns what it opens and
 * closes it.
 */
import { join } from 'node:path'
import type { AgentConnection, Stream } from '@agentclientprotocol/sdk'
import { SandboxError } from '@sandlot/sandbox/errors'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { AgentStatus, AgentUser } from '@sandlot/shared/acp-meta'
import type { RemovedData } from '@sandlot/shared/api'
import type { Mode } from '@sandlot/shared/mode'
import { SANDLOT } from '@sandlot/shared/office/audit'
import type { Rule } from '@sandlot/shared/rules'
import { PERSON_TOOLS, type PersonTool } from '@sandlot/shared/team/agent-settings'
import { MCP_SIGN_IN_PATH } from '@sandlot/shared/mcp-client'
import { type Fetch, refusingFetch, safeFetch } from '@sandlot/shared/node/safe-fetch'
import { BackgroundAudit } from '@sandlot/storage/audit/background-audit'
import { freeBytes, freeBytesFor } from '@sandlot/storage/free-bytes'
import { openSessionStore } from '@sandlot/storage/sessions/open'
import { ClientServers } from './acp/client-servers.ts'
import { hostRefusal } from './approval/hosts.ts'
import { ByteStreams } from './acp/byte-streams.ts'
import { agentChecks } from './acp/checks.ts'
import { Starting } from './acp/requests/sandbox.ts'
import { createAcpServer } from './acp/server.ts'
import type { AgentConfig } from './config.ts'
import { type EndingStep, endingStep } from './session/ending-step.ts'
import { deploymentKeys } from './secrets/keys.ts'
import { countsResume, takeLastEnd } from './watchdog/last-end.ts'
import { writeLastEnd } from './watchdog/last-end-file.ts'
import { budgetsOf } from './limits/budget-view.ts'
import { spentOf } from './limits/period-budgets.ts'
import { limitsCost, promptLimits } from './limits/settings.ts'
import { modelsOf } from './loop/model-choice.ts'
import { RETRY_RULES } from './loop/retry.ts'
import { Line } from './line/line.ts'
import { SandboxLine } from './line/sandbox-line.ts'
import { AgentMetrics } from './metrics/agent-metrics.ts'
import { openTracing } from './metrics/tracing.ts'
import { documentUrlOf } from './mcp/oauth/client.ts'
import { openMcp } from './mcp/open-mcp.ts'
import { ServerBook } from './mcp/server-book.ts'
import { ServerDesk } from './mcp/server-desk.ts'
import { unpriced } from './model/settings.ts'
import { ModelBook } from './model/model-book.ts'
import { takesImages } from './model/model.ts'
import { People } from './people/people.ts'
import { Removals } from './people/removal.ts'
import { createPolicies } from './calls/policies/index.ts'
import { createToolMetrics } from './metrics/tool-metrics.ts'
import { toolStatsView } from './metrics/tool-stats-view.ts'
import { SYSTEM_PROMPT } from './loop/system-prompt.ts'
import { openSandboxes } from './sandbox-backend.ts'
import { withCachedRules, RuleBook } from './approval/rule-book.ts'
import { ruleSettings } from './approval/config.ts'
import { createScheduler } from './calls/scheduler.ts'
import { sealingKeys } from './secrets/sealing-keys.ts'
import { UserSecrets } from './secrets/user-secrets.ts'
import { createVault } from './secrets/vault.ts'
import { followChanges } from './replicas/follow-changes.ts'
import { openReplica } from './replicas/open-replica.ts'
import { claimSandbox, isElsewhere, sharedEngine, soleOwner } from './replicas/ownership.ts'
import { Retention } from './session/retention.ts'
import { SessionManager } from './session/manager.ts'
import { FULL_IMAGE_FILE } from '@sandlot/shared/config/full-image'
import { SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import { makeStatus } from './acp/status.ts'
import { Execs } from './exec/exec.ts'
import { endJobs } from './tools/background/end-jobs.ts'
import { PersonJobs } from './tools/background/person-jobs.ts'
import { lookAtJobs } from './tools/background/ends.ts'
import { ALLOW_HOST, allowHost } from './tools/allow-host.ts'
import { builtinTools } from './tools/builtin/index.ts'
import { Terminals } from './terminals/terminals.ts'
import { FileWatches } from './acp/file-watches.ts'
import { SHUTDOWN } from './tools/tool-error.ts'
import { pageRow } from './config/file.ts'
import { TEAM, instructionsFor } from './config/instructions.ts'
import { givesTools, hasAnyTools, mayUse, offeredToolsOf, offeredTools } from './config/tool-offer.ts'
import { type ToolListing, listedTools, unavailableServers, unknownServers } from './config/tool-listing.ts'
import { lowerMode, openSettings } from './config/user-settings.ts'
import { type Tool, idOf } from './tools/tool.ts'
import type { Log } from './log.ts'
import { userNetwork } from './config/network.ts'

const VERSION = '0.1.0'
const GUEST_HAS_NONE = 'Guests have no sandbox of their own.'
/** Milliseconds that a shutdown waits for prompts to end, or to be released. */
const END_MS = 20_000
/** Milliseconds that a shutdown waits until others have its people. */
const DRAIN_MS = 28_000
/** Milliseconds that a list of tools waits for MCP servers. */
const LIST_MS = 10_000
const PRIVATE_OWN_SERVER_HINT = '; an administrator can add a server there, or allow you to'
/** Whose MCP servers an operator sees: those of the deployment, which everybody has. */
const LOCAL_USER_ID = 'local'
const PRIVATE_SERVER_HINT =
  '; only the operator of this Sandlot can name a server there (mcpServers in its configuration)'

export interface Agent {
  readonly model: { name: string; demo: boolean }
  /**
   * Of our own whose definitions were checked; 0 where none is offered. Servers tell theirs
   * later.
   */
  readonly tools: number
  /** Serve one client. */
  serve: (stream: Stream) => AgentConnection
  streams: ByteStreams
  status: () => Promise<AgentStatus>
  /** The tools there are and how the MCP servers stand, for the operator. */
  listTools: () => Promise<ToolListing>
  /** Take up what an earlier process left running. Returns how many prompts. */
  resume(): Promise<number>
  /** Hand everybody over to the other agents of this database. On SQLite nothing happens. */
  drain(): Promise<void>
  /**
   * As `interrupt`, for what an earlier process left running: no further step of it is run. Returns
   * how many prompts.
   */
  endUnfinished(): Promise<number>
  /** End all prompts with reason `interrupted` and stop all sandboxes; then `leave`. */
  interrupt(): Promise<void>
  /** Release all prompts: commands go on, and the next start resumes them. */
  leave(): Promise<void>
}

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
  const keys = deploymentKeys(config.keysFolder, config.deployment)
  const sealing = sealingKeys(config.keysFolder, keys.key)
  const database = await openSessionStore(config.database, {
    mode: config.sessionsMode,
    room: { userBytes: config.storeBytes, freeBytes: () => freeBytesFor(config.database) },
    leftOut: (err) => log.warn({ err }, 'a damaged rule that allows something was ignored'),
  })
  const store = withCachedRules(database, (userId) => ownership.has(userId))
  const replica = await openReplica({
    database: config.database,
    id: config.replica,
    address: config.address,
    version: VERSION,
    keys: { ...keys, sealing, folder: config.keysFolder },
    rows: store.replicas,
    log,
  })
  const ownership = replica ?? soleOwner()
  const audit = new BackgroundAudit(store.audit, (err) =>
    log.warn({ err }, 'a line of the audit log was not written'),
  )
  const people = await People.open(store.people, log)
  const removals = new Removals(await store.people.removed())
  const rules = new RuleBook(store.rules, ruleSettings(config.file.rules), Date.now)
  const asksForHosts = config.file.rules?.hosts === 'ask'
  if (sealing.length > 1) log.warn({}, 'a key rotation was interrupted; ./sandlot keys rotate finishes it')
  const vault = createVault(sealing)
  const secrets = new UserSecrets({ rows: store.secrets, vault, redact, now: Date.now })
  const models = await ModelBook.open({
    rows: store.modelEndpoints,
    secrets,
    configured: config.models,
    timeouts: config.modelTimeouts,
    prices: config.file.prices ?? {},
    limitsCost: () =>
      limitsCost(
        config.limits.written.everybody,
        config.limits.total,
        ...personal.all.flatMap(({ settings: { limits, together } }) => [limits, together]),
      ),
    now: Date.now,
    log,
  })
  const tools = [...builtinTools(), ...moreTools].map(idOf)
  const serverBook = await ServerBook.open({
    rows: store.mcpServers,
    secrets,
    configured: config.mcpServers,
    may: (userId) => (mayBringServers(userId) ? (personal.of(userId).ownServers ?? 'public') : 'none'),
    changed: () => {
      personal.renew()
      mcp.servers.changed()
    },
    now: Date.now,
    log,
  })
  const sources = {
    ...config,
    network: config.sandbox.network,
    models: () => models.names,
    servers: () => serverBook.deployment.map(({ name }) => name),
    unpriced: () => unpriced(models.settings)[0],
    tools: [...tools, ALLOW_HOST, ...PERSON_TOOLS],
  }
  const personal = await openSettings(store, people, { ...sources, log })
  const network = userNetwork(config.sandbox.network, asksForHosts, personal, rules)
  const sandboxes = openSandboxes(config, keys, store.ledger, log, {
    share: replica && sharedEngine(replica, store.replicas),
    ofUsers: network.options,
    emailOf: (userId) => people.emailOf(userId),
    refused: (userId, host, reason) => {
      const who = { id: userId, name: people.emailOf(userId) ?? userId }
      const line = { who, what: 'host_refused', whom: { name: host }, after: { reason } } as const
      const others = { who: SANDLOT, what: 'host_refused', whom: { name: 'other hosts' } } as const
      audit.count(`${userId} ${host} ${reason}`, line, others)
    },
  })
  const leaving = new AbortController()
  // Never rejects.
  void sandboxes.maintain()

  const offer = {
    toolsEnabled: config.toolsEnabled,
    builtinTools: config.builtinTools,
    tools: config.file.tools,
    personal,
  }
  /** False: no server is started, and a call that the model invents finds no tool. */
  const anyTools = (): boolean =>
    config.toolsEnabled || personal.all.some(({ settings: { tools } }) => givesTools(tools))
  const mayBringServers = (userId: string): boolean =>
    people.get(userId)?.role !== 'guest' && hasAnyTools(userId, offer)
  const starting = new Starting()
  const watches = new FileWatches({ connected: (userId) => sandboxes.connected(userId), log })
  const started = async (userId: string, signal: AbortSignal): Promise<Sandbox> => {
    if (tracing === undefined || (await sandboxes.connected(userId)) !== undefined)
      return sandboxes.acquire(userId, signal)
    return tracing.sandboxStart(userId, sandboxes.acquire(userId, signal))
  }
  const acquire = (userId: string, signal: AbortSignal): Promise<Sandbox> =>
    removals.has(userId)
      ? Promise.reject(new SandboxError('cancelled', 'The account of this user was removed.'))
      : people.get(userId)?.role === 'guest'
        ? Promise.reject(new SandboxError('cancelled', GUEST_HAS_NONE))
        : starting.during(
            userId,
            claimSandbox(ownership, userId).then(async () => {
              const sandbox = await started(userId, signal)
              watches.awake(userId, sandbox)
              return sandbox
            }),
          )
  const builtin = [...builtinTools(), allowHost(rules, (userId) => network.mayAsk(userId)), ...moreTools]
  const refusalFor =
    (userId: string) =>
    async (host: string, port: number): Promise<string | undefined> =>
      hostRefusal(await rules.of(userId), host, port)
  const mcp = openMcp({
    specs: config.mcpServers,
    book: serverBook,
    builtin,
    folder: join(config.dataFolder, 'mcp'),
    secrets,
    redirectUrl: `${config.publicUrl}${MCP_SIGN_IN_PATH}`,
    documentUrl: documentUrlOf(config.publicUrl),
    sandbox: acquire,
    clientServerFetch: (userId) => ({
      server: safeFetch({ refusal: refusalFor(userId), loopback: true, hint: PRIVATE_SERVER_HINT }),
      authority: safeFetch({ refusal: refusalFor(userId) }),
    }),
    ownServerFetch: (userId) => {
      const refusal = refusalFor(userId)
      const toPublic = safeFetch({ refusal, hint: PRIVATE_OWN_SERVER_HINT })
      const toAll = refusingFetch(refusal)
      const server: Fetch = (url, init) =>
        serverBook.may(userId) === 'local' ? toAll(url, init) : toPublic(url, init)
      return { server, authority: server }
    },
    log,
  })
  // Else each starts with the first prompt of a person who has tools.
  if (anyTools()) mcp.servers.start()
  const clientServers = new ClientServers({
    mcp,
    hasTools: (userId) => hasAnyTools(userId, offer),
    redact,
    hostEnvironment,
  })
  const metrics = createToolMetrics()
  const startedAt = Date.now()
  const prompts = new AgentMetrics(tracing)
  const scheduler = createScheduler({
    maxConcurrent: config.maxConcurrentTools,
    results: config.results,
    policies: createPolicies({
      metrics,
      toolTimeoutMs: config.toolTimeoutMs,
      outputLimitBytes: config.outputLimitBytes,
      approvalTtlMs: config.approvalTtlMs,
    }),
  })

  const beyond = (sessionId: string, userId: string, held: readonly Rule[]): string | undefined =>
    !SANDBOX_BACKENDS[config.sandbox.backend].isolates
      ? 'keeps commands from nothing'
      : network.reachesAny(userId, held)
        ? 'has network access'
        : mcp.inSandbox(userId, sessionId)
          ? 'has an MCP server in it'
          : undefined
  const limitsOf = (userId: string) =>
    promptLimits(personal.of(userId).limits, [
      ...personal.togetherOf(userId),
      { of: { kind: 'deployment' }, limits: config.limits.total },
    ])
  // Its order is stored where one process has all prompts.
  const lineRows = replica === undefined ? store.line : undefined
  const line = new Line({ places: config.prompts, rows: lineRows, leaving: leaving.signal, log })
  const sandboxLine = new SandboxLine({
    limit: config.sandbox.host.sandboxes,
    acquire,
    connected: (userId) => sandboxes.connected(userId),
    line: new Line({ places: 1, leaving: leaving.signal, log }),
  })
  const manager = new SessionManager({
    store,
    ownership,
    rules,
    secrets,
    metrics: prompts,
    models,
    system: SYSTEM_PROMPT,
    tools: offeredToolsOf((...asked) => clientServers.toolsOf(...asked), offer),
    instructions: (userId, sessionId) =>
      instructionsFor(userId, {
        deployment: config.instructions,
        ofUser: (id) => store.instructions.get(id),
        ofTeam: () => store.instructions.get(TEAM),
        awake: (id) => sandboxes.connected(id),
        set: personal.of(userId).instructions,
        project: store.chats.projectOf(userId, sessionId),
      }),
    runCalls: (calls, context) => scheduler.run(calls, context),
    sandbox: (userId, signal, waiting) => sandboxLine.acquire(userId, signal, waiting),
    lookAtJobs: lookAtJobs(sandboxes),
    portsOf: async (userId) => (await (await sandboxes.connected(userId))?.ports()) ?? [],
    endJobs: endJobs(sandboxes),
    isRemoved: (userId) => removals.has(userId),
    teamsOf: (userId) => people.get(userId)?.teams,
    membersOf: (teamId) => [...people.all].flatMap(([id, { teams }]) => (teams.includes(teamId) ? [id] : [])),
    beyond,
    resumeCounts: (promptId, userId) => replica?.countsResume(userId) ?? countsResume(lastEnd, promptId),
    resumesAfter: (error) => replica?.resumesAfter(error) === true,
    namesChats: true,
    maxTurns: config.limits.everybody.maxTurns,
    modeCeilingOf: (userId) => personal.of(userId).modeCeiling,
    modelsOf: (userId) => personal.of(userId).models,
    limitsOf,
    retry: RETRY_RULES,
    line,
    leaving: leaving.signal,
    now: Date.now,
    log,
  })
  const retention = new Retention({
    leads: () => ownership.leads(),
    isElsewhere: isElsewhere(ownership, store.replicas),
    rows: store.retention,
    audit: store.audit,
    isOpen: (sessionId) => manager.removal.isOpen(sessionId),
    expire: (chat) => manager.removal.expire(chat),
    release: (sessionId) => manager.removal.release(sessionId),
    now: Date.now,
    log,
  })
  const status = makeStatus({
    models,
    defaultMode: config.defaultMode,
    toolsEnabled: config.toolsEnabled,
    probeSandboxes: () => sandboxes.probe(),
    storeProblem: () => store.problem(),
    modelReasons: (names) => prompts.health.reasons(names),
    freeBytes: () => freeBytes(config.dataFolder),
    fullImageFile: join(config.dataFolder, FULL_IMAGE_FILE),
  })
  const streams = new ByteStreams()
  const terminals = new Terminals({
    acquire: (userId) => acquire(userId, leaving.signal),
    connected: (userId) => sandboxes.connected(userId),
    status: (userId) => sandboxes.status(userId),
    leaving: leaving.signal,
    audit: (line) => audit.write(line),
    log,
    now: Date.now,
  })
  const execs = new Execs({
    runCalls: (calls, context) => scheduler.run(calls, context),
    sandbox: acquire,
    rules,
    beyond,
    leaving: leaving.signal,
    audit: (line) => audit.write(line),
    log,
    now: Date.now,
  })
  followChanges(ownership, {
    people,
    settings: personal,
    models,
    servers: serverBook,
    removals,
    forgetRules: () => store.forgetRules(),
    removedPeople: () => store.people.removed(),
    recheck: (userId) => manager.shares.recheckUser(userId),
  })
  ownership.onChange('room', async () => void (await sandboxes.stopLongestIdle()))
  ownership.onLost((userId) => {
    store.forgetRules()
    terminals.forget(userId)
    watches.forget(userId)
    mcp.servers
      .closeUser(userId)
      .catch((err: unknown) => log.warn({ err, userId }, 'MCP servers of a person did not end'))
  })
  const acp = {
    manager,
    ownership,
    shell: {
      terminals,
      execs,
      connected: (userId: string) => sandboxes.connected(userId),
      desk: {
        sandboxes,
        starting,
        jobs: new PersonJobs({ store, connected: (userId) => sandboxes.connected(userId), now: Date.now }),
        image: config.sandbox.images.image,
        limits: config.sandbox.limits,
      },
      streams,
      mayUse: (userId: string, what: PersonTool) => mayUse(userId, what, offer),
    },
    defaultMode: config.defaultMode,
    get takesImages() {
      return modelsOf(models).some(takesImages)
    },
    models,
    administration: {
      toolStats: () => {
        const offered = new Set(offeredTools('', builtin, { ...offer, personal: undefined }).map(idOf))
        const own = builtin.map((tool) => [idOf(tool), offered.has(idOf(tool)) ? 'on' : 'off'] as const)
        return toolStatsView({ metrics, builtin: new Map(own), since: startedAt })
      },
      rules,
      settings: async () => [
        ...config.settings,
        pageRow('rules for everybody', (await rules.everybodys()).length),
        pageRow('model endpoints', models.view.endpoints.length),
        pageRow('MCP servers', serverBook.list('deployment', '').length),
      ],
    },
    mcpServers: new ServerDesk({
      book: serverBook,
      servers: mcp.servers,
      signIns: mcp.signIns,
      withheld: (userId) => personal.of(userId).withheldServers,
      unavailable: config.unavailableServers,
    }),
    finishSignIn: (userId: string, answer: URLSearchParams) => mcp.finishSignIn(userId, answer),
    secrets,
    rulesOf: (userId: string) => rules.of(userId),
    watches,
    workspace: async (userId: string) => (await acquire(userId, leaving.signal)).files,
    clientServers,
    requestFrame: (hash: string) => store.requestFrame(hash),
    metrics: () => prompts.scrape(metrics),
    audit: store.audit,
    retention,
    instructions: store.instructions,
    projects: store.chats,
    configuredInstructions: config.instructions,
    userSeen: (user: AgentUser) => {
      if (removals.has(user.id) || !people.record(user)) return
      personal.claim(user.id)
      manager.shares.recheckUser(user.id)
    },
    settings: personal,
    budgetsOf: (userId: string) => {
      const now = Date.now()
      const { warnAt } = config.limits
      return budgetsOf(limitsOf(userId).budgets, spentOf(store, userId, now), { now, warnAt })
    },
    removePerson: async (userId: string, data: RemovedData, handOver?: string) => {
      await removals.remove(userId, data, {
        rows: store.people,
        endSessions: (id, what) => manager.removal.endAllOf(id, what, handOver),
        audit: (line) => audit.write(line),
        endServers: (id, what) => mcp.removeUser(id, what),
        removeSandbox: (id, what) => sandboxes.remove(id, what),
        now: Date.now,
      })
      people.forget(userId)
      personal.forget(userId)
      log.info({ userId, data }, 'a person was removed')
    },
    modeCeilingOf: (userId: string, said: Mode | undefined) =>
      lowerMode(personal.of(userId).modeCeiling, said),
    status,
    overview: async () => ({
      version: VERSION,
      promptLimit: line.places,
      sandboxes: {
        ...(await sandboxes.facts()),
        limit: config.sandbox.host.sandboxes,
        memoryLimitMb: inMiB(config.sandbox.host.memoryBytes),
        image: config.sandbox.images.image,
      },
      freeBytes: freeBytes(config.dataFolder),
    }),
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

  const end = (step: EndingStep): Promise<void> => endingStep(step, log)
  const leave = async (): Promise<void> => {
    await end({
      work: async () => replica?.drain(),
      problem: 'not all people were handed over',
      withinMs: DRAIN_MS,
    })
    leaving.abort(SHUTDOWN)
    await end({ work: () => retention.stop(), problem: 'retention did not end', withinMs: END_MS })
    await end({ work: () => manager.leave(), problem: 'prompts did not let go', withinMs: END_MS })
    await end({ work: () => mcp.close(), problem: 'MCP servers did not end', withinMs: END_MS })
    await end({ work: () => sandboxes.close(), problem: 'the sandboxes could not be let go' })
    await end({ work: () => line.settled(), problem: 'the order of the line was not stored' })
    await end({ work: async () => tracing?.close(), problem: 'the last spans were not sent' })
    await end({ work: () => people.settled(), problem: 'an address was not stored' })
    await end({ work: () => personal.settled(), problem: 'settings were not stored' })
    await end({ work: () => audit.flush(), problem: 'the audit log was not written to its end' })
    await end({ work: async () => replica?.close(), problem: 'this replica is still known' })
    await end({ work: () => store.close(), problem: 'the store could not be closed' })
    const record = async (): Promise<void> => writeLastEnd(config.ownFolder, { how: 'left' })
    await end({ work: record, problem: 'the end in order could not be recorded' })
  }
  const interrupt = async (): Promise<void> => {
    await end({ work: () => manager.interruptAll(), problem: 'prompts did not end', withinMs: END_MS })
    await end({ work: () => sandboxes.stopAll(), problem: 'the sandboxes could not be stopped' })
    await leave()
  }
  return {
    model: models.view.main,
    tools: anyTools() ? builtin.filter(({ runs }) => runs?.offeredTo?.(LOCAL_USER_ID) !== false).length : 0,
    serve: createAcpServer(acp),
    streams,
    status,
    listTools: async () => {
      const patience = AbortSignal.timeout(LIST_MS)
      const start = anyTools()
      const all = start ? (await mcp.servers.toolsOf(LOCAL_USER_ID, patience)).listTools() : builtin
      const states = start
        ? await mcp.servers.states(LOCAL_USER_ID, patience)
        : unknownServers(config, 'started once a person has tools')
      const offered = offeredTools(LOCAL_USER_ID, all, { ...offer, personal: undefined })
      return {
        running: true,
        tools: listedTools(all, offered),
        servers: [...states, ...unavailableServers(config)],
      }
    },
    resume: async () => {
      retention.start()
      if (replica !== undefined) {
        const resume = (userIds: ReadonlySet<string>) => manager.resumeOf(userIds)
        return replica.begin({ resume, release: (userId) => manager.releaseOf(userId) })
      }
      const unfinished = (await store.unfinished()).filter(({ waiting }) => waiting === 0)
      await line.restore(
        unfinished.map(({ runningPromptId, userId }) => ({
          promptId: runningPromptId ?? '',
          person: userId,
        })),
      )
      const resumed = await manager.resumeUnfinished()
      const running = new Set((await manager.runningPrompts('')).map(({ promptId }) => promptId))
      line.keepOnly((promptId) => running.has(promptId))
      return resumed
    },
    drain: async () => replica?.drain(),
    endUnfinished: async () => {
      const none = { resume: () => Promise.resolve(0), release: () => Promise.resolve() }
      await replica?.begin(none)
      const ended = await manager.endUnfinished()
      await interrupt()
      return ended
    },
    leave,
    interrupt,
  }
}

function inMiB(bytes: number | undefined): number | undefined {
  return bytes === undefined ? undefined : Math.floor(bytes / 1024 / 1024)
}
