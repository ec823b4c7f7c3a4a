/** The servers of a deployment, put together from their parts; owned and closed by the agent. */
import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FetchLike } from '@modelcontextprotocol/client'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { RemovedData } from '@sandlot/shared/api'
import { makeScrubber } from '@sandlot/shared/scrub'
import { type BroughtFetch, BroughtSignIns } from './oauth/brought-sign-ins.ts'
import { oauthFetch } from './oauth/fetch.ts'
import { MachineAccess } from './oauth/machine-access.ts'
import type { SecretStore } from './oauth/records.ts'
import { type SignedIn, SignIns } from './oauth/sign-ins.ts'
import type { ServerAccess } from './server-access.ts'
import {
  fillTemplate,
  fillTemplates,
  type HttpSpec,
  type SecretOf,
  type ServerSpec,
  type StdioSpec,
} from './server-spec.ts'
import { McpServer, type Opened } from './server.ts'
import { McpServers, type ServerState } from './servers.ts'
import { type Brought, type BroughtServer, type BroughtStanding, SessionServers } from './session-servers.ts'
import {
  createProcessGuard,
  type ProcessGuard,
  startDeploymentProcess,
} from './transports/deployment-process.ts'
import { HttpTransport } from './transports/http.ts'
import { startSandboxProcess } from './transports/sandbox-process.ts'
import { type BytePipe, createStderrLog, StdioTransport } from './transports/stdio.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import type { Tool, ToolLog } from '../tools/tool.ts'

/** Bytes of one message of a server, on every transport. A longer one ends the connection. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024

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

export interface OpenServerParts {
  /** Absolute; each server of the deployment has a folder here as its home. */
  folder: string
  guard: ProcessGuard
  secret: SecretOf
  sandbox: (userId: string, signal: AbortSignal) => Promise<Sandbox>
  /** The access of a user to a server with OAuth. */
  access: (spec: HttpSpec, userId: string) => ServerAccess
  /** How HTTP servers are reached; default: as this process does. */
  fetch?: FetchLike
  log: ToolLog
}

/** Key of the settings under which an argument stands; no variable and no header is called like that. */
const ARGUMENT = ' arg '

/** Nothing is started yet. `userId`: undefined for a server that is everybody's. */
export function makeServer(spec: ServerSpec, userId: string | undefined, parts: OpenServerParts): McpServer {
  const { log } = parts
  const secret = (name: string): Promise<string | undefined> =>
    userId === undefined ? Promise.resolve(undefined) : parts.secret(userId, name)
  const access = spec.kind === 'http' ? accessTo(spec, userId, parts) : undefined
  return new McpServer({
    spec,
    log,
    access,
    settings: () => settingsOf(spec, secret),
    open: (settings, signal) =>
      spec.kind === 'http'
        ? openHttp(spec, settings, access, parts.fetch)
        : openStdio(spec, userId, settings, signal, parts),
  })
}

function accessTo(
  spec: HttpSpec,
  userId: string | undefined,
  parts: OpenServerParts,
): ServerAccess | undefined {
  const { auth, url } = spec.config
  if (auth?.type === 'oauth') return userId === undefined ? undefined : parts.access(spec, userId)
  if (auth === undefined) return undefined
  const { clientId, scope, issuer, algorithm } = auth
  return new MachineAccess({
    url,
    clientId,
    proof:
      spec.privateKey === undefined
        ? { secret: spec.clientSecret ?? '' }
        : { privateKey: spec.privateKey, algorithm },
    issuer,
    scope,
    fetch: oauthFetch({ named: issuer === undefined ? [url] : [url, issuer] }),
    now: Date.now,
  })
}

async function settingsOf(
  spec: ServerSpec,
  secret: (name: string) => Promise<string | undefined>,
): Promise<Record<string, string>> {
  if (spec.kind === 'http') return fillTemplates(spec.headers, secret)
  const args = await Promise.all(spec.args.map((template) => fillTemplate(template, secret)))
  return {
    ...(await fillTemplates(spec.env, secret)),
    ...Object.fromEntries(args.map((value, index) => [`${ARGUMENT}${index}`, value ?? ''])),
  }
}

async function openHttp(
  spec: HttpSpec,
  headers: Readonly<Record<string, string>>,
  access: ServerAccess | undefined,
  fetch: FetchLike | undefined,
): Promise<Opened> {
  const transport = new HttpTransport({
    url: spec.config.url,
    headers,
    auth: access,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    fetch,
  })
  return { transport, ending: () => transport.cutOff }
}

async function openStdio(
  spec: StdioSpec,
  userId: string | undefined,
  settings: Readonly<Record<string, string>>,
  signal: AbortSignal,
  parts: OpenServerParts,
): Promise<Opened> {
  const { name, config } = spec
  const isArgument = ([key]: [string, string]): boolean => key.startsWith(ARGUMENT)
  const entries = Object.entries(settings)
  const env = Object.fromEntries(entries.filter((entry) => !isArgument(entry)))
  const args = spec.args.map((_, index) => settings[`${ARGUMENT}${index}`] ?? '')
  // What it was given, its log must not repeat.
  const scrub = makeScrubber(Object.values(settings))
  const stderr = createStderrLog(parts.log, name, scrub)
  const process = {
    command: config.command,
    args,
    env,
    cwd: config.cwd,
    stderr,
  }

  const start = async (): Promise<BytePipe> => {
    if (config.where === 'deployment')
      return startDeploymentProcess({
        ...process,
        home: join(parts.folder, ...homeOf(spec, userId)),
        guard: parts.guard,
      })
    if (userId === undefined) throw new Error('a server in a sandbox needs a user')
    const sandbox = await parts.sandbox(userId, signal)
    return startSandboxProcess({ ...process, sandbox, server: spec.place })
  }
  const transport = new StdioTransport({
    open: start,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    onGarbage: (count, line) => {
      // The first lines say what is wrong; a thousand more say nothing new.
      if (count <= 3 || Number.isInteger(Math.log10(count)))
        parts.log.warn({ server: name, count, line: scrub(line) }, 'an MCP server printed what is no message')
    },
  })
  return { transport, ending: () => transport.ended }
}

/** A folder of its own, and for what works with one user's secrets one for each user: programs keep such things at home. */
function homeOf({ name, place }: StdioSpec, userId: string | undefined): string[] {
  if (userId === undefined || place !== name) return [place]
  const plain = /^[A-Za-z0-9_-]{1,64}$/.test(userId)
  return [name, 'users', plain ? userId : createHash('sha256').update(userId).digest('hex')]
}

/** The folders that servers keep for this user alone, below the folder of all homes. */
export function homesOf(specs: readonly ServerSpec[], userId: string): string[][] {
  return specs.flatMap((spec) =>
    spec.perUser && 'args' in spec && spec.place === spec.name ? [homeOf(spec, userId)] : [],
  )
}
