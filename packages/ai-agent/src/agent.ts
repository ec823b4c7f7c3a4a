/** One running agent, put together: store, sandboxes, model, tools, sessions. Owns what it opens and closes it. */
import { join } from 'node:path'
import type { AgentConnection, Stream } from '@agentclientprotocol/sdk'
import type { AgentStatus } from '@sandlot/shared/acp-meta'
import { messageOf } from '@sandlot/shared/errors'
import { openSessionStore } from '@sandlot/storage/sessions/sqlite'
import { serveAcp } from './acp/server.ts'
import type { AgentConfig } from './config.ts'
import { deploymentKeys } from './keys.ts'
import { startOfDay } from './limits/budgets.ts'
import { RETRY_RULES } from './loop-retry.ts'
import { createDemoModel } from './model/demo.ts'
import type { Model } from './model/model.ts'
import type { ModelSettings } from './model/settings.ts'
import { createOpenAIModel } from './model/openai.ts'
import { createPolicies } from './policies/index.ts'
import { createToolMetrics } from './policies/tool-metrics.ts'
import { SYSTEM_PROMPT } from './prompt.ts'
import { openSandboxes } from './sandbox-backend.ts'
import { RuleBook } from './rules/rule-book.ts'
import { ruleSettings } from './rules/rules-config.ts'
import { createScheduler } from './scheduler/scheduler.ts'
import { UserSecrets } from './secrets/user-secrets.ts'
import { createVault } from './secrets/vault.ts'
import { SessionManager } from './session-manager.ts'
import { makeStatus } from './status.ts'
import { lookAtJobs } from './tools/background/ends.ts'
import { builtinTools } from './tools/builtin/index.ts'
import { SHUTDOWN } from './tools/call-failure.ts'
import { createRegistry } from './tools/registry.ts'
import type { Tool, ToolLog } from './tools/tool.ts'

const VERSION = '0.1.0'
/** Milliseconds that a shutdown waits for prompts to end, or to let go. */
const END_MS = 20_000

export interface Agent {
  readonly model: { name: string; demo: boolean }
  /** Serve one client. */
  serve: (stream: Stream) => AgentConnection
  status: () => Promise<AgentStatus>
  /** Take up what an earlier process left running. Returns how many prompts. */
  resume(): Promise<number>
  /** End all prompts with reason `interrupted` and stop all sandboxes; then `leave`. */
  interrupt(): Promise<void>
  /** Let go: prompts and commands go on, and the next start takes them up. */
  leave(): Promise<void>
}

/**
 * Call only while holding the agent's lock. `moreTools` are registered beside the built-in ones. `hide` hears every secret of a
 * user that is read or set: the log must not show it.
 */
export async function openAgent(
  config: AgentConfig,
  log: ToolLog,
  moreTools: readonly Tool[] = [],
  hide: (secret: string) => void = () => undefined,
): Promise<Agent> {
  const keys = deploymentKeys(config.dataFolder, config.deployment)
  const store = await openSessionStore(join(config.dataFolder, 'sessions.db'))
  const sandboxes = openSandboxes(config, keys, store.ledger, log)
  const { model, fallbacks } = createModels(config)
  const leaving = new AbortController()
  // This process holds the agent's lock, so it is the one controller of the deployment. Never rejects.
  void sandboxes.maintain()

  const registry = createRegistry()
  const offered = (tool: Tool): boolean =>
    config.builtinTools === 'all' || config.builtinTools.includes(tool.name)
  // Without tools the registry is empty too: a call that the model makes up finds nothing.
  if (config.toolsEnabled) registry.register(...builtinTools().filter(offered), ...moreTools)
  const metrics = createToolMetrics()
  const scheduler = createScheduler({
    maxConcurrent: config.maxConcurrentTools,
    policies: createPolicies({
      metrics,
      toolTimeoutMs: config.toolTimeoutMs,
      outputLimitBytes: config.outputLimitBytes,
      approvalTtlMs: config.approvalTtlMs,
    }),
  })

  const vault = createVault([keys.key])
  const secrets = new UserSecrets({ rows: store.secrets, vault, hide, now: Date.now })
  const rules = new RuleBook(store.rules, ruleSettings(config.file.rules), Date.now)
  const manager = new SessionManager({
    store,
    rules,
    secrets,
    model,
    system: SYSTEM_PROMPT,
    tools: () => Promise.resolve(registry),
    runCalls: (calls, context) => scheduler.run(calls, context),
    sandbox: (userId, signal) => sandboxes.acquire(userId, signal),
    lookAtJobs: lookAtJobs(sandboxes),
    fallbacks,
    maxTurns: config.limits.everybody.maxTurns,
    limitsOf: (userId) => ({
      ...(config.limits.users.get(userId) ?? config.limits.everybody),
      spentToday: () => store.spentSince(userId, startOfDay(Date.now())),
    }),
    retry: RETRY_RULES,
    leaving: leaving.signal,
    now: Date.now,
    log,
  })
  const status = makeStatus({
    model,
    defaultMode: config.defaultMode,
    toolsEnabled: config.toolsEnabled,
    probeSandboxes: () => sandboxes.probe(),
    now: Date.now,
  })
  const acp = {
    manager,
    defaultMode: config.defaultMode,
    model: model.name,
    secrets,
    status,
    version: VERSION,
    log,
  }

  const leave = async (): Promise<void> => {
    leaving.abort(SHUTDOWN)
    await within(END_MS, manager.leave(), log, 'prompts did not let go in time')
    await attempt(sandboxes.close(), log, 'the sandboxes could not be let go')
    await store.close()
  }
  return {
    model: { name: model.name, demo: model.demo },
    serve: (stream) => serveAcp(stream, acp),
    status,
    resume: () => manager.resumeUnfinished(),
    leave,
    interrupt: async () => {
      await within(END_MS, manager.interruptAll(), log, 'prompts did not end in time')
      await attempt(sandboxes.stopAll(), log, 'the sandboxes could not be stopped')
      await leave()
    },
  }
}

function createModels({ models }: AgentConfig): { model: Model; fallbacks: Model[] } {
  if (models === undefined) return { model: createDemoModel(), fallbacks: [] }
  const { main, fallbacks, ...timeouts } = models
  const create = ({ name, ...about }: ModelSettings): Model =>
    createOpenAIModel({ ...about, model: name, ...timeouts })
  return { model: create(main), fallbacks: fallbacks.map(create) }
}

/** Wait, but not for ever; a shutdown goes on. */
async function within(ms: number, work: Promise<void>, log: ToolLog, problem: string): Promise<void> {
  const late = Promise.withResolvers<'late'>()
  const timer = setTimeout(() => late.resolve('late'), ms)
  try {
    if ((await Promise.race([work, late.promise])) === 'late') log.warn({ ms }, problem)
  } finally {
    clearTimeout(timer)
  }
}

async function attempt(work: Promise<void>, log: ToolLog, problem: string): Promise<void> {
  try {
    await work
  } catch (error) {
    log.warn({ error: messageOf(error) }, problem)
  }
}
