/** All configured servers: which ones a user has, and which tools a prompt gets from them. */
import { messageOf } from '@sandlot/shared/base/errors'
import { LRUCache } from 'lru-cache'
import { exposedNames, type ServerTool, toolId } from './exposed-names.ts'
import type { ServerSpec } from './server-spec.ts'
import type { Offered } from './server-parts.ts'
import type { McpServer } from './server.ts'
import { CONNECT, connectTool, mcpTool } from './tool.ts'
import { createRegistry, type ToolRegistry, validateToolDefinitions } from '../tools/registry.ts'
import { idOf, type Tool } from '../tools/tool.ts'
import type { Log } from '../log.ts'

interface McpServersParts {
  /** Those of the deployment now; the same objects while nothing about them changes. */
  specs: () => readonly ServerSpec[]
  /** Those of this user alone now. */
  ownSpecs?: (userId: string) => readonly ServerSpec[]
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
  readonly #shared = new Map<ServerSpec, McpServer>()
  /** In the order of their last use. */
  readonly #ofUsers = new Map<string, Map<ServerSpec, McpServer>>()
  /** Replaced or removed ones, while calls may still use them. */
  readonly #leaving = new Set<McpServer>()
  readonly #registries = new LRUCache<string, ToolRegistry>({ max: MAX_REGISTRIES })
  readonly #builtin = createRegistry()

  /** Throws `ToolDefinitionError` for the built-in tools. */
  constructor(parts: McpServersParts) {
    this.#parts = parts
    this.#builtin.register(...parts.builtin)
  }

  /** Starts the shared servers, without waiting. */
  start(): void {
    for (const server of this.#sharedServers()) server.start()
  }

  /** Ends those that are not among the servers any more, when their calls have ended. */
  changed(): void {
    const { specs, ownSpecs } = this.#parts
    this.#retireOthers(this.#shared, specs())
    for (const [userId, theirs] of this.#ofUsers)
      this.#retireOthers(theirs, [...specs(), ...(ownSpecs?.(userId) ?? [])])
  }

  /** The server that works for this user by one of the present `specs`. Starts nothing. */
  serverOf(spec: ServerSpec, userId: string): McpServer | undefined {
    return [...this.#sharedServers(), ...this.#serversOf(userId)].find((server) => server.spec === spec)
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
    try {
      const found = await this.#find(userId, signal, sessionServers)
      return found.length === 0 ? this.#builtin : this.#registryOf(found)
    } catch (error) {
      this.#parts.log.warn({ error: messageOf(error) }, 'the tools of MCP servers could not be collected')
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

  /** Ends this user's connection to it, when its calls have ended; the next use makes another. */
  leave(spec: ServerSpec, userId: string): void {
    const theirs = this.#ofUsers.get(userId)
    const server = theirs?.get(spec)
    if (server === undefined) return
    theirs?.delete(spec)
    server.retire()
    this.#leaving.add(server)
  }

  /** Ends the servers of this user alone. Never rejects. */
  async closeUser(userId: string): Promise<void> {
    const theirs = [...(this.#ofUsers.get(userId)?.values() ?? [])]
    this.#ofUsers.delete(userId)
    await Promise.all(theirs.map((server) => server.close()))
  }

  /** Ends all of them. Never rejects. */
  async close(): Promise<void> {
    const ofUsers = [...this.#ofUsers.values()].flatMap((theirs) => [...theirs.values()])
    const all = [...this.#shared.values(), ...ofUsers, ...this.#leaving]
    this.#ofUsers.clear()
    await Promise.all(all.map((server) => server.close()))
  }

  async #find(userId: string, signal: AbortSignal, sessionServers: readonly McpServer[]): Promise<Found[]> {
    const servers = [...this.#sharedServers(), ...this.#serversOf(userId), ...sessionServers]
    return Promise.all(
      servers.map(async (server) => {
        const offered = server.setAsideFor(userId) ?? withChosen(server, await server.offered(signal))
        return { server, offered }
      }),
    )
  }

  #sharedServers(): readonly McpServer[] {
    const specs = this.#parts.specs().filter(({ perUser }) => !perUser)
    return this.#serversBy(specs, this.#shared, undefined)
  }

  #serversOf(userId: string): readonly McpServer[] {
    const { specs, ownSpecs } = this.#parts
    const all = [...specs(), ...(ownSpecs?.(userId) ?? [])].filter(({ perUser }) => perUser)
    const theirs = this.#ofUsers.get(userId) ?? new Map<ServerSpec, McpServer>()
    const servers = this.#serversBy(all, theirs, userId)
    this.#ofUsers.delete(userId)
    if (servers.length === 0) return servers
    this.#ofUsers.set(userId, theirs)
    for (const [other, held] of this.#ofUsers) {
      if (this.#ofUsers.size <= MAX_USERS) break
      if ([...held.values()].every(({ idle }) => idle)) this.#ofUsers.delete(other)
    }
    return servers
  }

  /**
   * Servers of these specs, created where they are not among `held`; others of `held` are stopped.
   */
  #serversBy(
    specs: readonly ServerSpec[],
    held: Map<ServerSpec, McpServer>,
    userId: string | undefined,
  ): readonly McpServer[] {
    this.#retireOthers(held, specs)
    return specs.map((spec) => {
      const server = held.get(spec) ?? this.#parts.makeServer(spec, userId)
      held.set(spec, server)
      return server
    })
  }

  #retireOthers(held: Map<ServerSpec, McpServer>, specs: readonly ServerSpec[]): void {
    for (const one of this.#leaving) if (one.idle) this.#leaving.delete(one)
    for (const [spec, server] of held) {
      if (specs.includes(spec)) continue
      held.delete(spec)
      server.retire()
      this.#leaving.add(server)
    }
  }

  #registryOf(found: readonly Found[]): ToolRegistry {
    const key = JSON.stringify(
      found.map(({ server, offered }) => [
        server.name,
        offered.state,
        server.revision,
        server.spec.added?.chosen(),
      ]),
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
    return registry
  }
}

/** Without the tools that are switched off. */
function withChosen({ spec }: McpServer, offered: Offered): Offered {
  const off = spec.added?.chosen().off ?? []
  if (offered.state !== 'ready' || off.length === 0) return offered
  return { ...offered, tools: offered.tools.filter(({ name }) => !off.includes(name)) }
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
