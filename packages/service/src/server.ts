/**
 * Puts the service together and starts it. The parts, in the order in which a message meets them.
 */
import { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import { BackgroundAudit } from '@sandlot/storage/audit/background-audit'
import { isPostgres } from '@sandlot/storage/database/dialect'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import type { ServicesStore } from '@sandlot/storage/accounts/services'
import { StorageError } from '@sandlot/storage/storage-error'
import type { AgentLinkOptions } from './agent/agent-link.ts'
import { AgentReplicas, type Replicas } from './agent/agent-replicas.ts'
import { type Agents, type AgentsOptions, OneAgent } from './agent/agents.ts'
import type { ServiceConfig } from './config.ts'
import { registrationOf } from './handlers.ts'
import { makeApp } from './http/app.ts'
import { readinessOf } from './http/health-routes.ts'
import {
  type ConnectionLimits,
  DEFAULT_CONNECTION_LIMITS,
  limitConnections,
  timeLimits,
} from './http/connection-limits.ts'
import { containOwnErrors, runFor } from './http/own-errors.ts'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { AGENT_TOKEN, type SERVICE_SECRETS, ensureSecret, printOf } from '@sandlot/shared/node/secret-file'
import { isStillIn } from './auth/caller.ts'
import { makeLimits } from './auth/limits.ts'
import type { LimitRates } from './auth/limits.ts'
import { type Clock, UserTraffic } from './auth/user-traffic.ts'
import { makeLog } from './log.ts'
import { AuditRetention } from './people/audit-retention.ts'
import { adoptTeams, notifyPersonChanged } from './people/teams.ts'
import { makeMetrics } from './metrics.ts'
import { alertPoster } from './notifications/alert-webhook.ts'
import { Alerts, type AlertsTimes } from './notifications/alerts.ts'
import { mailSender } from './notifications/mail.ts'
import { type NotificationTimes, Notifications } from './notifications/notifications.ts'
import { openPush } from './notifications/push.ts'
import { PeerServices } from './peers/peer-services.ts'
import { SharedPresence } from './peers/shared-presence.ts'
import { originRule } from './auth/origin.ts'
import { previewPlaces } from './previews/places.ts'
import { Backups } from './operations/backups.ts'
import { Checks } from './operations/checks.ts'
import { Previews } from './previews/previews.ts'
import { PreviewServer } from './previews/serve-previews.ts'
import { upstreams } from './previews/upstream-socket.ts'
import { makeScrubber } from '@sandlot/shared/base/scrub'
import { Removals } from './people/removals.ts'
import { sessionChanges } from './socket/session-changes.ts'
import { ExternalSignIn } from './sign-in/external-sign-in.ts'
import { OidcProvider } from './sign-in/oidc-provider.ts'
import { openSessions } from './chat/sessions.ts'
import { prepareSetup } from './auth/setup.ts'
import { SLOW_READER_BYTES } from './socket/chat-socket.ts'
import { Sockets } from './socket/sockets.ts'
import { makeUpgrade } from './socket/upgrade.ts'
import { uploadFiles } from './chat/upload-files.ts'
import { openUploads } from './chat/uploads.ts'

/** Limits that tests lower. */
interface ServiceDeps {
  writeLog?: (line: string) => void
  rates?: LimitRates
  /** The clock of the users' shares. */
  clock?: Clock
  connections?: Partial<ConnectionLimits>
  slowReaderBytes?: number
  removalRetryMs?: number
  removalSlowMs?: number
  notificationTimes?: Partial<NotificationTimes>
  alertTimes?: Partial<AlertsTimes>
  /** Push services on this machine are allowed. */
  push?: { loopback?: boolean; timeoutMs?: number }
  replicas?: () => Promise<Replicas>
  agentPauses?: NonNullable<AgentLinkOptions['pauses']>
  providerRetry?: { firstMs: number; longestMs: number }
}

interface RunningService {
  /** The listening address, as people can type it. */
  readonly url: string
  /** The address to open now: of the set-up page while there is no account, else `url`. */
  readonly entryUrl: string
  readonly app: ReturnType<typeof makeApp>
  /**
   * Closes sockets with 1001, gives requests a moment to finish, and releases everything. Prompts
   * continue in the agent.
   */
  close(): Promise<void>
}

type ServiceSecret = (typeof SERVICE_SECRETS)[number]

/** In the folder of keys: what sign-ins are signed with. */
const COOKIES: ServiceSecret = 'service-cookies'

/** Time that requests may take to finish when the service stops, in milliseconds. */
const CLOSE_GRACE_MS = 3_000

/**
 * Throws what opening the accounts or listening throws (`StorageError`, `EADDRINUSE`); nothing is
 * left open then.
 */
export async function startService(config: ServiceConfig, deps: ServiceDeps = {}): Promise<RunningService> {
  const { keysFolder } = config
  const isShared = isPostgres(config.accounts)
  const authSecret = await ensureSecret(keysFolder, COOKIES)
  const publicUrl = config.publicUrl ?? `http://${nameOf(config.host)}:${config.port}`
  const accounts = await openAccounts(config.accounts, {
    secret: authSecret,
    publicUrl,
  })
  const undo: (() => Promise<void>)[] = [() => accounts.close()]
  try {
    const secretOf = (name: ServiceSecret): Promise<string> =>
      sharedSecret(keysFolder, name, accounts.services)
    await secretOf(COOKIES)
    const setup = await prepareSetup(accounts, keysFolder, isShared ? authSecret : undefined)
    const secrets = [
      authSecret,
      setup.token,
      config.metricsToken,
      config.agentToken,
      config.mail?.auth?.pass,
      ...config.providers.map(({ clientSecret }) => clientSecret),
    ].map((secret = '') => secret)
    const log = makeLog(config.logLevel, makeScrubber(secrets), deps.writeLog)
    const metrics = makeMetrics()
    const isOurs = originRule(config.publicUrl, config.allowedOrigins)
    const limits = makeLimits(deps.rates)
    const sockets = new Sockets(
      metrics.sockets,
      (ended) => peers.notify(ended),
      (caller) => isStillIn(accounts, caller),
    )
    const peers = new PeerServices({
      where: config.accounts,
      accounts,
      sockets,
      log,
      onRemoved: (userId) => removals.askedFor(userId),
      onSetUp: () => setup.isDone(),
      onLead: () => {
        removals.check()
        if (agent.connected) adopt()
      },
    })
    undo.push(() => peers.close())
    const leads = (): boolean => peers.leads()
    const stopping = new AbortController()

    const audit = new BackgroundAudit(accounts.audit, (err) =>
      log.error({ err }, 'an audit log entry was not written'),
    )
    undo.push(() => audit.flush())
    const uploads = await openUploads(
      isShared ? accounts.services.uploads : await uploadFiles(join(config.dataFolder, 'uploads')),
      {
        onProblem: (error) =>
          log.warn({ err: error }, 'old images could not be removed; retrying in an hour'),
      },
    )
    undo.push(() => uploads.close())
    const sessions = openSessions(config.sessions)
    undo.push(() => sessions.close())
    const auditRetention = new AuditRetention({ audit: accounts.audit, sessions, log, leads })
    undo.push(() => auditRetention.close())
    let url = publicUrl
    const sendMail = config.mail === undefined ? undefined : mailSender(config.mail)
    const push = openPush({
      ...deps.push,
      secret: await secretOf('push'),
      subject: pushSubject(config),
    })
    const presence = isShared
      ? new SharedPresence({ id: peers.id, sockets, store: accounts.services, log })
      : undefined
    undo.push(async () => presence?.close())
    const notifications = new Notifications({
      store: accounts.notifications,
      reader: () => sessions.reader(),
      presence: presence ?? sockets,
      leads,
      push,
      sendMail,
      publicUrl: () => url,
      log,
      count: (channel, result) => metrics.notification(channel, result),
      times: deps.notificationTimes,
    })
    undo.push(() => notifications.close())
    const publishChange = sessionChanges({ sessions, sockets, accounts, log })
    const adopting = new SerialQueue()
    const adopt = (): void => void adopting.run(() => adoptTeams({ accounts, agent, sockets, log }))
    // After the end of the link, which ends its requests.
    undo.push(() => adopting.idle())
    const place = { url: config.agentUrl }
    const registry = isPostgres(config.sessions) && {
      find: deps.replicas ?? (async () => (await sessions.reader()).replicas),
      ownerOf: async (sessionId: string) => (await (await sessions.reader()).sessions.get(sessionId))?.userId,
      token: config.agentToken ?? (await ensureSecret(keysFolder, AGENT_TOKEN)),
      otherwise: place,
    }
    const agentOptions: AgentsOptions = {
      log,
      onSessionChanged: (change) => {
        publishChange(change)
        notifications.wake()
      },
      onConnected: (connected) => {
        metrics.agentConnected(connected)
        if (connected && leads()) adopt()
      },
      pauses: deps.agentPauses,
    }
    const agent: Agents = registry
      ? new AgentReplicas(registry, agentOptions)
      : new OneAgent(place, agentOptions)
    undo.push(() => agent.close())

    const removals = new Removals({
      accounts,
      agent,
      sockets,
      uploads,
      log,
      leads,
      retryMs: deps.removalRetryMs,
      slowMs: deps.removalSlowMs,
    })
    undo.push(() => removals.close())

    const external = new ExternalSignIn({
      accounts,
      audit,
      providers: config.providers.map(
        (provider) => new OidcProvider({ config: provider, publicUrl, log, retry: deps.providerRetry }),
      ),
      sockets,
      personChanged: (userId) => notifyPersonChanged({ accounts, agent, sockets, log }, userId),
      log,
    })
    undo.push(async () => external.close())

    const places = previewPlaces(config)
    const previews = new Previews({
      secret: await secretOf('previews'),
      sockets,
      accounts,
    })
    const previewServer = new PreviewServer({
      places,
      previews,
      upstreams: upstreams(agent, previews),
      secure: publicUrl.startsWith('https:'),
      log,
    })

    const { webhook } = config.alerts
    // Also without one: the folder of keys is copied, or read-only, once all are made.
    const alertKey = await secretOf('alerts')
    const alerts = new Alerts({
      email: config.alerts.email,
      sendMail,
      webhook: webhook && {
        host: webhook.host,
        post: alertPoster(webhook, alertKey),
      },
      readiness: () =>
        readinessOf({ config, accounts, sessions, agent, external, stopping: stopping.signal }),
      store: accounts.alerts,
      leads,
      publicUrl: () => url,
      log,
      times: deps.alertTimes,
    })
    undo.push(() => alerts.close())
    await peers.start()

    const backups = new Backups({ file: config.backupStatusFile, audit: accounts.audit, leads, log })
    undo.push(() => backups.close())
    const checks = new Checks({ config, url: () => url, accounts, sessions })
    const { slowReaderBytes = SLOW_READER_BYTES } = deps
    const parts = {
      slowReaderBytes,
      config,
      log,
      accounts,
      sessions,
      uploads,
      agent,
      sockets,
      places,
      previews,
      removals,
      audit,
      external,
      limits,
      traffic: new UserTraffic(deps.clock),
      metrics,
      setup,
      peers,
      isOurs,
      sendMail,
      push,
      notifications,
      alerts,
      checks,
      backups,
    }
    const all = { ...parts, stopping: stopping.signal }
    const app = makeApp(all, registrationOf(all))
    const connections = { ...DEFAULT_CONNECTION_LIMITS, ...deps.connections }
    const server = new Server(timeLimits(connections))
    containOwnErrors(server, log)
    limitConnections(server, connections)
    const answer = getRequestListener(app.fetch)
    const upgrade = makeUpgrade(parts)
    // By the host before anything else: at a preview's, nothing of ours answers.
    server.on('request', (request, response) =>
      previewServer.isFor(request.headers.host)
        ? previewServer.serve(request, response)
        : void answer(request, response),
    )
    server.on('upgrade', (request, socket, head) =>
      runFor(socket, () =>
        previewServer.isFor(request.headers.host)
          ? previewServer.upgrade(request, socket, head)
          : upgrade(request, socket, head),
      ),
    )
    const port = await listen(server, config)
    url = config.publicUrl ?? `http://${nameOf(config.host)}:${port}`
    log.info({ host: config.host, port }, 'listening')

    const close = async (): Promise<void> => {
      stopping.abort()
      // Before the sockets, whose end would look as if everyone had gone away.
      await notifications.close()
      sockets.closeAll()
      await stop(server)
      for (const step of undo.toReversed()) await step()
      log.info('stopped')
    }
    let closing: Promise<void> | undefined
    return {
      url,
      entryUrl: setup.token === undefined ? url : `${url}/setup?token=${setup.token}`,
      app,
      close: () => (closing ??= close()),
    }
  } catch (error) {
    for (const step of undo.toReversed()) await step()
    throw error
  }
}

/**
 * The secret of that name, made where there is none. Throws `StorageError` where it is not the one
 * that the database has been used with.
 */
async function sharedSecret(folder: string, name: ServiceSecret, services: ServicesStore): Promise<string> {
  const secret = await ensureSecret(folder, name)
  if (await services.hasKey(name, printOf(secret))) return secret
  throw new StorageError(
    'cannot_open',
    `${join(folder, name)} is not the key that the database has been used with, so sign-ins, second factors or pushes would not hold. Copy the folder keys from another service of it or from its backup, or set SANDLOT_KEYS_DIR to it.`,
  )
}

function listen(server: Server, { host, port }: ServiceConfig): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

async function stop(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  server.closeIdleConnections()
  const late = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS)
  await closed
  clearTimeout(late)
}

/** The contact of this Sandlot's operator, for push services. */
function pushSubject({ publicUrl, mail }: ServiceConfig): string {
  if (publicUrl?.startsWith('https:') === true) return publicUrl
  return `mailto:${mail?.from.address ?? 'nobody@sandlot.invalid'}`
}

/** A listening address as people can type it. */
function nameOf(host: string): string {
  if (host === '0.0.0.0' || host === '::' || host === '') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
