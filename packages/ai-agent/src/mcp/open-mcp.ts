/** The servers of a deployment, put together from their parts; owned and closed by the agent. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { RemovedData } from '@sandlot/shared/api'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { ToolRegistry } from '../tools/registry.ts'
import type { Tool, ToolLog } from '../tools/tool.ts'
import { type BroughtFetch, BroughtSignIns } from './oauth/brought-sign-ins.ts'
import { McpServers, type ServerState } from './servers.ts'
import type { SecretStore } from './oauth/records.ts'
import { type SignedIn, SignIns } from './oauth/sign-ins.ts'
import { homesOf, makeServer } from './open-server.ts'
import { createProcessGuard } from './transports/process-guard.ts'
import type { McpServer } from './server.ts'
import type { HttpSpec, ServerSpec } from './server-spec.ts'
import { type Brought, type BroughtServer, type BroughtStanding, SessionServers } from './session-servers.ts'

export interface OpenMcpOptions {
  specs: readonly ServerSpec[]
  builtin: readonly Tool[]
  /** Absolute; homes of the servers of the deployment. */
  folder: string
  secrets: SecretStore
  /** Where authorization servers send users back to. */
  redirectUrl: string
  /** Where our description of ourselves is published for them (`documentUrlOf`); absent: nowhere. */
  documentUrl?: string | undefined
  sandbox: (userId: string, signal: AbortSignal) => Promise<Sandbox>
  /** How HTTP servers that a session of this user brought, and their sign-ins, are reached: they are nobody's in whom we trust. */
  broughtFetch?: (userId: string) => BroughtFetch
  log: ToolLog
}

export interface Mcp {
  readonly servers: McpServers
  /**
   * The tools for a prompt that begins now; with a session also those of the servers that it brought. See
   * `McpServers.toolsOf`. Never rejects.
   */
  toolsOf(userId: string, signal: AbortSignal, sessionId?: string): Promise<ToolRegistry>
  /** How each server is for this user, and in this session, now. */
  states(userId: string, signal: AbortSignal, sessionId?: string): Promise<ServerState[]>
  /** How each server that the session brought was when its last prompt began; nothing before the first. */
  standing(userId: string, sessionId: string): BroughtStanding[]
  /**
   * Connect the servers that a client brought for a session: from its next prompt on it has their tools, beside the
   * deployment's, in place of what it brought before, which ends when `unused` resolves. Answers for each what it is called
   * here, or why it cannot be used; whether it can be reached shows with the prompt (`states`). Never throws.
   */
  bring(
    userId: string,
    sessionId: string,
    servers: readonly BroughtServer[],
    unused?: () => Promise<void>,
  ): Brought[]
  /** Aborted when somebody has come back from this link of a server that a client brought. */
  signInOver(link: string): AbortSignal
  /** The session is closed or deleted: end what it brought. Never rejects. */
  leaveSession(sessionId: string): Promise<void>
  /** This user was removed: their servers end, and with `purge` what those keep at home goes. */
  leaveUser(userId: string, data: RemovedData): Promise<void>
  /** A user is back from an authorization server. Never rejects. */
  finishSignIn(userId: string, answer: URLSearchParams): Promise<SignedIn>
  /** End every server. Never rejects. */
  close(): Promise<void>
}

/** Starts nothing; see `McpServers.start`. @throws ToolDefinitionError for the built-in tools. */
export function openMcp(options: OpenMcpOptions): Mcp {
  const { specs, builtin, folder, secrets, redirectUrl, documentUrl, sandbox, log } = options
  const guard = createProcessGuard()
  const signIns = new SignIns({ specs: specs.filter(isSignedInTo), secrets, redirectUrl, documentUrl, log })
  const parts = {
    folder,
    guard,
    secret: (userId: string, name: string) => secrets.get(userId, name),
    sandbox,
    access: signIns.access.bind(signIns),
    log,
  }
  const servers = new McpServers({
    specs,
    builtin,
    log,
    makeServer: (spec, userId) => makeServer(spec, userId, parts),
  })
  const broughtSignIns = new BroughtSignIns({ fetch: options.broughtFetch, log })
  const sessions = new SessionServers({
    reserved: specs.map(({ name }) => name),
    makeServer: (spec, userId) => {
      const fetch = options.broughtFetch?.(userId).server
      const access = broughtSignIns.access.bind(broughtSignIns)
      return makeServer(spec, userId, { ...parts, access, fetch })
    },
  })
  const broughtTo = (userId: string, sessionId: string | undefined): readonly McpServer[] =>
    sessionId === undefined ? [] : sessions.of(userId, sessionId)
  return {
    servers,
    toolsOf: (userId, signal, sessionId) => servers.toolsOf(userId, signal, broughtTo(userId, sessionId)),
    states: (userId, signal, sessionId) => servers.states(userId, signal, broughtTo(userId, sessionId)),
    standing: (userId, sessionId) => sessions.standing(userId, sessionId),
    bring: (...brought) => sessions.bring(...brought),
    signInOver: (link) => broughtSignIns.over(link),
    leaveSession: (sessionId) => sessions.leave(sessionId),
    async leaveUser(userId, data) {
      await servers.leave(userId)
      broughtSignIns.leaveUser(userId)
      const homes = data === 'purge' ? homesOf(specs, userId) : []
      for (const home of homes) await rm(join(folder, ...home), { recursive: true, force: true })
    },
    finishSignIn: (userId, answer) => signIns.finish(userId, answer),
    async close() {
      await Promise.all([servers.close(), sessions.close()])
      await Promise.allSettled([guard.close(), broughtSignIns.close()])
    },
  }
}

/** By each user, at the authority of the server. */
function isSignedInTo(spec: ServerSpec): spec is HttpSpec {
  return spec.kind === 'http' && spec.config.auth?.type === 'oauth'
}
