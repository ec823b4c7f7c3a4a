/**
 * The stores of the deployment, opened: sessions, ownership, and the rows that are read at start.
 */
import { PERSON_TOOLS } from '@sandlot/shared/account/agent-settings'
import { BackgroundAudit } from '@sandlot/storage/audit/background-audit'
import { freeBytesFor } from '@sandlot/storage/database/free-bytes'
import { openSessionStore } from '@sandlot/storage/store/open'
import { ruleSettings } from '../approval/config.ts'
import { RuleRegistry, withCachedRules } from '../approval/rule-registry.ts'
import type { AgentConfig } from '../config/config.ts'
import { givesTools, hasAnyTools } from '../config/tool-offer.ts'
import { openSettings } from '../config/user-settings.ts'
import { type PromptLimits, limitsCost, promptLimits } from '../limits/settings.ts'
import type { Log } from '../log.ts'
import { ServerRegistry } from '../mcp/server-registry.ts'
import { ModelRegistry } from '../model/model-registry.ts'
import type { SettingsRegistry } from '../people/settings-registry.ts'
import { People } from '../people/people.ts'
import { Removals } from '../people/removal.ts'
import { openReplica } from '../replicas/open-replica.ts'
import { soleOwner } from '../replicas/ownership.ts'
import { engineId } from '../config/sandbox-backend.ts'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'
import { sealingKeys } from '../people/sealing-keys.ts'
import { UserSecrets } from '../people/user-secrets.ts'
import { createVault } from '../people/vault.ts'
import { ALLOW_HOST } from '../tools/allow-host.ts'

export const VERSION = '0.1.0'

export type AgentStores = Awaited<ReturnType<typeof openStores>>

/**
 * `tools`: ids of those that there are. `redact` is called with each secret that is read or set,
 * `serversChanged` when other MCP servers hold. Throws `ConfigError`.
 */
export async function openStores(
  config: AgentConfig,
  log: Log,
  {
    tools,
    redact,
    serversChanged,
  }: { tools: readonly string[]; redact: (secret: string) => void; serversChanged: () => void },
) {
  const keys = deploymentKeys(config.keysFolder, config.deployment)
  const sealing = sealingKeys(config.keysFolder, keys.key)
  const database = await openDatabase(config, log)
  const store = withCachedRules(database, (userId) => ownership.has(userId))
  const replica = await openReplica({
    database: config.database,
    id: config.replica,
    address: config.address,
    version: VERSION,
    engine: () => engineId(config, keys, log),
    keys: { ...keys, sealing, folder: config.keysFolder },
    rows: store.replicas,
    log,
  })
  const ownership = replica ?? soleOwner()
  const audit = new BackgroundAudit(store.admin.audit, (err) =>
    log.warn({ err }, 'an audit log entry was not written'),
  )
  const people = await People.open(store.people.known, log)
  const removals = new Removals(await store.people.known.removed())
  const rules = new RuleRegistry(store.people.rules, ruleSettings(config.file.rules), Date.now)
  if (sealing.length > 1) log.warn({}, 'a key rotation was interrupted; ./sandlot keys rotate finishes it')
  const vault = createVault(sealing)
  const secrets = new UserSecrets({ rows: store.people.secrets, vault, redact, now: Date.now })
  const models = await ModelRegistry.open({
    rows: store.people.modelEndpoints,
    secrets,
    configured: config.models,
    silence: config.modelSilence,
    originKey: keys.key,
    prices: config.file.prices ?? {},
    limitsCost: () => anyLimitsCost(config, personal),
    now: Date.now,
    log,
  })
  const mayBringServers = (userId: string): boolean =>
    people.get(userId)?.role !== 'guest' && hasAnyTools(userId, offer)
  const servers = await ServerRegistry.open({
    rows: store.people.mcpServers,
    secrets,
    configured: config.mcpServers,
    may: (userId) => (mayBringServers(userId) ? (personal.of(userId).ownServers ?? 'public') : 'none'),
    changed: () => {
      personal.renew()
      serversChanged()
    },
    now: Date.now,
    log,
  })
  const personal = await openSettings(store.people.settings, people, {
    ...config,
    network: config.sandbox.network,
    models: () => models.names,
    servers: () => servers.deployment.map(({ name }) => name),
    unpriced: () => models.unpriced(),
    tools: [...tools, ALLOW_HOST, ...PERSON_TOOLS],
    log,
  })
  /** Which tools a person is offered. */
  const offer = {
    toolsEnabled: config.toolsEnabled,
    tools: config.file.tools,
    personal,
  }
  /** False: no server is started, and a call that the model invents finds no tool. */
  const anyTools = (): boolean =>
    config.toolsEnabled || personal.all.some(({ settings: { tools } }) => givesTools(tools))
  return {
    keys,
    store,
    replica,
    ownership,
    audit,
    people,
    removals,
    rules,
    secrets,
    models,
    servers,
    personal,
    offer,
    anyTools,
    /** The limits of this person's prompts. */
    limitsOf: (userId: string) => limitsOf(config, personal, userId),
  }
}

function openDatabase(config: AgentConfig, log: Log) {
  return openSessionStore(config.database, {
    mode: config.sessionsMode,
    room: { userBytes: config.storeBytes, freeBytes: () => freeBytesFor(config.database) },
    leftOut: (err) => log.warn({ err }, 'a damaged rule that allows something was ignored'),
  })
}

function anyLimitsCost({ limits: { written, total } }: AgentConfig, personal: SettingsRegistry): boolean {
  return limitsCost(
    written.everybody,
    total,
    ...personal.all.flatMap(({ settings: { limits, together } }) => [limits, together]),
  )
}

function limitsOf(config: AgentConfig, personal: SettingsRegistry, userId: string): PromptLimits {
  return promptLimits(personal.of(userId).limits, [
    ...personal.togetherOf(userId),
    { of: { kind: 'deployment' }, limits: config.limits.total },
  ])
}
