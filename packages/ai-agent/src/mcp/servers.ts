/** All configured servers: which ones a user has, and which tools a prompt gets from them. */
import { messageOf } from '@sandlot/shared/errors'
import { exposedNames, type ServerTool, toolId } from './exposed-names.ts'
import type { ServerSpec } from './server-spec.ts'
import type { McpServer, Offered } from './server.ts'
import { CONNECT, connectTool, mcpTool } from './tool.ts'
import { createRegistry, type ToolRegistry, validateToolDefinitions } from '../tools/registry.ts'
import { idOf, type Tool } from '../tools/tool.ts'
import type { Log } from '../log.ts'

interface McpServersParts {
  specs: readonly ServerSpec[]
  /** The tools of every user, without servers. */
  builtin: readonly Tool[]
  /** `userId`: its user; undefined: shared by all. */
  makeServer: (spec: ServerSpec, userId: string | undefined) => McpServer
  log: Log
}

/** The status of a server, for users. */
export interface ServerStatus {
  name: string
  state: Offered['state']
  why?: string
  /** A line for each of its tools that cannot be offered. */
  problems: readonly string[]
}

/** The status of a server for one user. */
export interface ServerState extends ServerStatus {
  /** The id of each offered tool, and its name for the model. */
  tools: { id: string; name: string }[]
}

/** Users whose servers are kept; those of an evicted user are made again on demand. */
const MAX_USERS = 1_000
/** Cached registries: most users have the same tools. */
const MAX_REGISTRIES = 64

interface Found {
  server: McpServer
  offered: Offered
}

export class McpServers {
  readonly #parts: McpServersParts
  readonly #shared: readonly McpServer[]
  /** In the order of their last use. */
  readonly #ofUsers = new Map<string, readonly McpServer[]>()
  readonly #registries = new Map<string, ToolRegistry>()
  readonly #builtin = createRegistry()

  /** Throws `ToolDefinitionError` for the built-in tools. */
  constructor(parts: McpServersParts) {
    this.#parts = parts
    this.#builtin.register(...parts.builtin)
    this.#shared = parts.specs
      .filter(({ perUser }) => !perUser)
      .map((spec) => parts.makeServer(spec, undefined))
  }

  /** Starts the shared servers, without waiting. */
  start(): void {
    for (const server of this.#shared) server.start()
  }

  /**
   * The tools for a prompt that begins now: the same object, with the same bytes, while nothing
   * changes. A server that is down has none. `sessionServers`: those of its session alone. Never
   * rejects.
   */
  async toolsOf(
    userId: string,
    signal: AbortSignal,
    sessionServers: readonly McpServer[] = [],
  ): Promise<ToolRegistry> {
    if (this.#parts.specs.length + sessionServers.length === 0) return this.#builtin
    try {
      return this.#registryOf(await this.#find(userId, signal, sessionServers))
    } catch (error) {
      this.#parts.log.warn({ error: messageOf(error) }, 'the tools of MCP servers could not be put together')
      return this.#builtin
    }
  }

  /** The state of each server for this user now. */
  async states(
    userId: string,
    signal: AbortSignal,
    sessionServers: readonly McpServer[] = [],
  ): Promise<ServerState[]> {
    const found = await this.#find(userId, signal, sessionServers)
    const names = namesOf(found, this.#parts.builtin)
    return found.map(({ server, offered }) => ({
      name: server.name,
      state: offered.state,
      ...(offered.state === 'unavailable' ? { why: offered.why } : {}),
      tools: serverTools(server, offered).map((tool) => ({
        id: toolId(tool),
        name: names.get(toolId(tool)) ?? '',
      })),
      problems: server.problems,
    }))
  }

  /** Ends the servers of this user alone. Never rejects. */
  async closeUser(userId: string): Promise<void> {
    const theirs = this.#ofUsers.get(userId) ?? []
    this.#ofUsers.delete(userId)
    await Promise.all(theirs.map((server) => server.close()))
  }

  /** Ends all of them. Never rejects. */
  async close(): Promise<void> {
    const all = [...this.#shared, ...[...this.#ofUsers.values()].flat()]
    this.#ofUsers.clear()
    await Promise.all(all.map((server) => server.close()))
  }

  async #find(userId: string, signal: AbortSignal, sessionServers: readonly McpServer[]): Promise<Found[]> {
    const servers = [...this.#shared, ...this.#serversOf(userId), ...sessionServers]
    return Promise.all(servers.map(async (server) => ({ server, offered: await server.offered(signal) })))
  }

  #serversOf(userId: string): readonly McpServer[] {
    const known = this.#ofUsers.get(userId)
    const { specs, makeServer } = this.#parts
    const servers = known ?? specs.filter(({ perUser }) => perUser).map((spec) => makeServer(spec, userId))
    if (servers.length === 0) return servers
    this.#ofUsers.delete(userId)
    this.#ofUsers.set(userId, servers)
    for (const [other, theirs] of this.#ofUsers) {
      if (this.#ofUsers.size <= MAX_USERS) break
      if (theirs.every(({ idle }) => idle)) this.#ofUsers.delete(other)
    }
    return servers
  }

  #registryOf(found: readonly Found[]): ToolRegistry {
    const key = JSON.stringify(
      found.map(({ server, offered }) => [server.name, offered.state, server.revision]),
    )
    const known = this.#registries.get(key)
    if (known !== undefined) return known
    const { builtin, log } = this.#parts
    const registry = createRegistry()
    registry.register(...builtin)
    const names = namesOf(found, builtin)
    for (const tool of found.flatMap((one) => toolsOfServer(one, names))) {
      // A tool that cannot be registered must not affect the others.
      const problems = registry.has(tool.name)
        ? [`${idOf(tool)}: its name is taken`]
        : validateToolDefinitions([tool])
      if (problems.length === 0) registry.register(tool)
      else log.warn({ problems }, 'a tool of an MCP server cannot be offered')
    }
    this.#registries.set(key, registry)
    const [oldest] = this.#registries.keys()
    if (this.#registries.size > MAX_REGISTRIES && oldest !== undefined) this.#registries.delete(oldest)
    return registry
  }
}

function serverTools({ name }: McpServer, offered: Offered): ServerTool[] {
  if (offered.state === 'ready') return offered.tools.map((tool) => ({ server: name, tool: tool.name }))
  return offered.state === 'needs_auth' ? [{ server: name, tool: CONNECT }] : []
}

/** A `connect` tool is named after its server, to differ from a server's own tools. */
function namesOf(found: readonly Found[], builtin: readonly Tool[]): Map<string, string> {
  const tools = found.flatMap(({ server, offered }) => serverTools(server, offered))
  const connects = found
    .filter(({ offered }) => offered.state === 'needs_auth')
    .map(({ server }) => server.name)
  const named = tools.map((one) =>
    one.tool === CONNECT && connects.includes(one.server)
      ? { ...one, tool: `${CONNECT}_${one.server}` }
      : one,
  )
  const names = exposedNames(
    named,
    builtin.map(({ name }) => name),
  )
  return new Map(tools.map((one, index) => [toolId(one), names.get(toolId(named[index] ?? one)) ?? '']))
}

function toolsOfServer({ server, offered }: Found, names: ReadonlyMap<string, string>): Tool[] {
  if (offered.state === 'unavailable') return []
  if (offered.state === 'needs_auth')
    return [connectTool(server, names.get(toolId({ server: server.name, tool: CONNECT })) ?? '')]
  return offered.tools.map((tool) =>
    mcpTool(server, tool, names.get(toolId({ server: server.name, tool: tool.name })) ?? ''),
  )
}
