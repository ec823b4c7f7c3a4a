/** Puts the servers of a deployment together; the agent owns and closes them. */
import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FetchLike } from '@modelcontextprotocol/client'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import type { RemovedData } from '@sandlot/shared/account/api'
import { makeScrubber } from '@sandlot/shared/base/scrub'
import { ClientServerSignIns } from './oauth/client-server-sign-ins.ts'
import { type ClientServerFetch, oauthFetch } from './oauth/fetch.ts'
import { MachineAccess } from './oauth/machine-access.ts'
import { SecretRecords, type SecretStore } from './oauth/records.ts'
import { type SignInResult, SignIns } from './oauth/sign-ins.ts'
import type { ServerAccess } from './server-access.ts'
import {
  fillTemplate,
  fillTemplates,
  type HttpSpec,
  type SecretOf,
  type ServerSpec,
  type StdioSpec,
} from './server-spec.ts'
import type { ServerRegistry } from './server-registry.ts'
import { SlowServers } from './slow-servers.ts'
import { McpServer } from './server.ts'
import type { Opened } from './server-parts.ts'
import { McpServers, type ServerState } from './servers.ts'
import {
  type ClientServerResult,
  type ClientServer,
  type ClientServerStatus,
  SessionServers,
} from './session-servers.ts'
import {
  createProcessGuard,
  type ProcessGuard,
  startDeploymentProcess,
} from './transports/deployment-process.ts'
import { HttpTransport } from './transports/http.ts'
import { startSandboxProcess } from './transports/sandbox-process.ts'
import { type BytePipe, createStderrLog, StdioTransport } from './transports/stdio.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import type { Tool } from '../tools/tool.ts'
import type { Log } from '../log.ts'

/** Bytes of one message of a server, on every transport. A longer one ends the connection. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024
/** Milliseconds that a person who has signed in waits for the tools of the server. */
const SIGNED_IN_MS = 3_000

/** Entries in memory by user and server. */
const MAX_SIGN_INS = 10_000

interface OpenMcpOptions {
  /** Those of the configuration. */
  specs: readonly ServerSpec[]
  /** Those that were added on the page. */
  registry?: ServerRegistry
  builtin: readonly Tool[]
  /** Absolute: the parent folder of the homes of the deployment's servers. */
  folder: string
  secrets: SecretStore
  /** The redirect target of authorization servers. */
  redirectUrl: string
  /** The URL of the client document (`documentUrlOf`); undefined: none. */
  documentUrl?: string | undefined
  sandbox: (userId: string, signal: AbortSignal) => Promise<Sandbox>
  /** Access to this user's client servers over HTTP and their sign-ins: they are not trusted. */
  clientServerFetch?: (userId: string) => ClientServerFetch
  /** The same of servers that this user has added on the page. */
  ownServerFetch?: (userId: string) => ClientServerFetch
  log: Log
}

export interface Mcp {
  readonly servers: McpServers
  /**
   * The tools for a prompt that begins now; with a session also those of its client's servers. See
   * `McpServers.toolsOf`. Never rejects.
   */
  toolsOf(userId: string, signal: AbortSignal, sessionId?: string): Promise<ToolRegistry>
  /** The state of each server for this user, and in this session, now. */
  states(userId: string, signal: AbortSignal, sessionId?: string): Promise<ServerState[]>
  /** The status of the session's servers when its last prompt began; empty before the first. */
  sessionServerStatus(userId: string, sessionId: string): ClientServerStatus[]
  /**
   * Replaces the servers that a client named for a session, from its next prompt on; the previous
   * ones end when `unused` resolves. Returns for each its name here, or why it cannot be used;
   * whether it can be reached is known with the prompt (`states`). Never throws.
   */
  setSessionServers(
    userId: string,
    sessionId: string,
    servers: readonly ClientServer[],
    unused?: () => Promise<void>,
  ): ClientServerResult[]
  /** True if a server of this user, or of this session, is in their sandbox. */
  inSandbox(userId: string, sessionId: string): boolean
  /** Aborted when the user returns from this link of a client's server. */
  signInEnded(link: string): AbortSignal
  /** Ends the servers of a closed or deleted session. Never rejects. */
  closeSession(sessionId: string): Promise<void>
  /** Ends the servers of a removed user, and with `purge` removes what they stored at home. */
  removeUser(userId: string, data: RemovedData): Promise<void>
  readonly signIns: {
    /** True if this user has signed in to it; undefined: it has no sign-in of users. */
    isSignedIn(spec: ServerSpec, userId: string): Promise<boolean | undefined>
    /** Forgets the user's tokens. Calls that run may fail. */
    signOut(spec: ServerSpec, userId: string): Promise<void>
  }
  /** Finishes a sign-in with the parameters of the redirect. Never rejects. */
  finishSignIn(userId: string, answer: URLSearchParams): Promise<SignInResult>
  /** Ends every server. Never rejects. */
  close(): Promise<void>
}

/** Starts nothing; see `McpServers.start`. Throws `ToolDefinitionError` for the built-in tools. */
export function openMcp(options: OpenMcpOptions): Mcp {
  const { registry, builtin, folder, secrets, log } = options
  const specs = specsOf(options)
  const guard = createProcessGuard()
  const signIns = new SignIns({
    keyOf: ({ place }) => place,
    records: ({ name, added }, userId) => new SecretRecords(secrets, userId, added?.recordsAs ?? name),
    fetch: ({ added }, userId) =>
      added?.ownerId === undefined ? undefined : options.ownServerFetch?.(userId),
    redirectUrl: async () => options.redirectUrl,
    documentUrl: options.documentUrl,
    most: MAX_SIGN_INS,
    log,
  })
  const parts = {
    folder,
    guard,
    secret: (userId: string, name: string) => secrets.get(userId, name),
    sandbox: options.sandbox,
    access: signIns.access.bind(signIns),
    slowServers: new SlowServers(),
    log,
  }
  const servers = new McpServers({
    specs: specs.deployment,
    ownSpecs: specs.own,
    builtin,
    log,
    makeServer: (spec, userId) => {
      const fetch =
        spec.added?.ownerId === undefined ? undefined : options.ownServerFetch?.(spec.added.ownerId).server
      return makeServer(spec, userId, { ...parts, fetch })
    },
  })
  const clientServerSignIns = new ClientServerSignIns({ fetch: options.clientServerFetch, log })
  const sessions = openSessionServers(options, specs, parts, clientServerSignIns)
  return {
    servers,
    ...sessionMethods(servers, sessions, specs),
    signInEnded: (link) => clientServerSignIns.signInEnded(link),
    async removeUser(userId, data) {
      registry?.forget(userId)
      await servers.closeUser(userId)
      clientServerSignIns.removeUser(userId)
      const homes = data === 'purge' ? homesOf(options.specs, userId) : []
      for (const home of homes) await rm(join(folder, ...home), { recursive: true, force: true })
    },
    signIns: signInMethods(signIns, servers),
    finishSignIn: (userId, answer) => finishSignIn(signIns, servers, specs, userId, answer),
    async close() {
      await Promise.all([servers.close(), sessions.closeAll()])
      await Promise.allSettled([guard.close(), clientServerSignIns.close()])
    },
  }
}

interface Specs {
  deployment: () => readonly ServerSpec[]
  /** Servers that this user has added. */
  own: (userId: string) => readonly ServerSpec[]
  all: (userId: string) => ServerSpec[]
}

function specsOf({ specs: configured, registry }: OpenMcpOptions): Specs {
  const deployment = (): readonly ServerSpec[] => registry?.deployment ?? configured
  const own = (userId: string): readonly ServerSpec[] => registry?.own(userId) ?? []
  return { deployment, own, all: (userId) => [...deployment(), ...own(userId)] }
}

function openSessionServers(
  options: OpenMcpOptions,
  specs: Specs,
  parts: Omit<OpenServerParts, 'fetch'>,
  clientServerSignIns: ClientServerSignIns,
): SessionServers {
  return new SessionServers({
    reserved: (userId) => specs.all(userId).map(({ name }) => name),
    makeServer: (spec, userId) => {
      const fetch = options.clientServerFetch?.(userId).server
      const access = clientServerSignIns.access.bind(clientServerSignIns)
      return makeServer(spec, userId, { ...parts, access, fetch })
    },
  })
}

type SessionMethods =
  | 'toolsOf'
  | 'states'
  | 'sessionServerStatus'
  | 'setSessionServers'
  | 'inSandbox'
  | 'closeSession'

function sessionMethods(
  servers: McpServers,
  sessions: SessionServers,
  specs: Specs,
): Pick<Mcp, SessionMethods> {
  const serversOf = (userId: string, sessionId: string | undefined): readonly McpServer[] =>
    sessionId === undefined ? [] : sessions.of(userId, sessionId)
  return {
    toolsOf: (userId, signal, sessionId) => servers.toolsOf(userId, signal, serversOf(userId, sessionId)),
    states: (userId, signal, sessionId) => servers.states(userId, signal, serversOf(userId, sessionId)),
    sessionServerStatus: (userId, sessionId) => sessions.status(userId, sessionId),
    setSessionServers: (...args) => sessions.set(...args),
    inSandbox: (userId, sessionId) =>
      specs.all(userId).some(isInSandbox) ||
      sessions.of(userId, sessionId).some(({ spec }) => isInSandbox(spec)),
    closeSession: (sessionId) => sessions.close(sessionId),
  }
}

function signInMethods(signIns: SignIns, servers: McpServers): Mcp['signIns'] {
  return {
    isSignedIn: async (spec, userId) =>
      hasUserSignIn(spec) ? signIns.access(spec, userId).isSignedIn() : undefined,
    async signOut(spec, userId) {
      if (!hasUserSignIn(spec)) return
      await signIns.access(spec, userId).signOut()
      servers.leave(spec, userId)
    },
  }
}

async function finishSignIn(
  signIns: SignIns,
  servers: McpServers,
  specs: Specs,
  userId: string,
  answer: URLSearchParams,
): Promise<SignInResult> {
  // Also of servers that were not used since the start.
  const pending = specs.all(userId).filter(hasUserSignIn)
  const ended = await signIns.finish(
    pending.map((spec) => ({ spec, userId })),
    answer,
  )
  const spec = 'server' in ended && specs.all(userId).find(({ name }) => name === ended.server)
  const server = spec ? servers.serverOf(spec, userId) : undefined
  // The page that the person returns to shows how it stands, and asks nothing by itself.
  const checked = server?.check(AbortSignal.timeout(SIGNED_IN_MS))
  if (checked !== undefined) await orTimeout(checked, SIGNED_IN_MS, undefined)
  return ended
}

function isInSandbox(spec: ServerSpec): boolean {
  return spec.kind === 'stdio' && spec.config.where === 'sandbox'
}

/** True if each user signs in to it. */
function hasUserSignIn(spec: ServerSpec): spec is HttpSpec {
  return spec.kind === 'http' && spec.config.auth?.type === 'oauth'
}

interface OpenServerParts {
  /** Absolute: the parent folder of the homes of the deployment's servers. */
  folder: string
  guard: ProcessGuard
  secret: SecretOf
  sandbox: (userId: string, signal: AbortSignal) => Promise<Sandbox>
  /** A user's access to a server with OAuth. */
  access: (spec: HttpSpec, userId: string) => ServerAccess
  /** Sends requests to HTTP servers; default: this process's `fetch`. */
  fetch?: FetchLike
  slowServers: SlowServers
  log: Log
}

/** Prefix of the settings' keys for arguments; no variable and no header starts like that. */
const ARGUMENT = ' arg '

/** Starts nothing. `userId`: undefined for a shared server. */
function makeServer(spec: ServerSpec, userId: string | undefined, parts: OpenServerParts): McpServer {
  const { log, slowServers } = parts
  const secret = (name: string): Promise<string | undefined> =>
    userId === undefined ? Promise.resolve(undefined) : parts.secret(userId, name)
  const access = spec.kind === 'http' ? accessTo(spec, userId, parts) : undefined
  return new McpServer({
    spec,
    log,
    access,
    slowServers,
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
  const added = await spec.added?.values()
  if (spec.kind === 'http') return fillTemplates(added ?? spec.headers, secret)
  const args = await Promise.all(spec.args.map((template) => fillTemplate(template, secret)))
  return {
    ...(await fillTemplates(added ?? spec.env, secret)),
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
  // The log must not contain the settings.
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
    onInvalidLine: (count, line) => {
      // The first lines show the problem; a thousand more add nothing.
      if (count <= 3 || Number.isInteger(Math.log10(count)))
        parts.log.warn(
          { server: name, count, line: scrub(line) },
          'an MCP server printed a line that is not a JSON-RPC message',
        )
    },
  })
  return { transport, ending: () => transport.ended }
}

/**
 * A folder of its own, one for each user when it has a user's secrets: programs store such things
 * at home.
 */
function homeOf({ name, place }: StdioSpec, userId: string | undefined): string[] {
  if (userId === undefined || place !== name) return [place]
  const plain = /^[A-Za-z0-9_-]{1,64}$/.test(userId)
  return [name, 'users', plain ? userId : createHash('sha256').update(userId).digest('hex')]
}

/** The homes of this user's own servers, relative to the folder of all homes. */
function homesOf(specs: readonly ServerSpec[], userId: string): string[][] {
  return specs.flatMap((spec) =>
    spec.perUser && 'args' in spec && spec.place === spec.name ? [homeOf(spec, userId)] : [],
  )
}
