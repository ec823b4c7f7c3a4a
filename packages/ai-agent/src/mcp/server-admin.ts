/** MCP servers on the page: views for people and administrators, and their changes. */
import { SandlotError } from '@sandlot/shared/base/errors'
import type {
  GivenServer,
  ServerScope,
  ServerStateView,
  ServersView,
  McpServersAsk,
} from '@sandlot/shared/admin/mcp-servers'
import { signInLink } from './error.ts'
import type { Mcp } from './open-mcp.ts'
import type { Actor, RegistryEntry, ServerRegistry } from './server-registry.ts'
import type { ServerSpec } from './server-spec.ts'
import type { Offered } from './server-parts.ts'
import type { McpServer } from './server.ts'
import type { McpServers } from './servers.ts'

interface ServerAdminParts {
  registry: ServerRegistry
  servers: McpServers
  signIns: Mcp['signIns']
  /** Names of those of the deployment that are not for this person. */
  withheld: (userId: string) => ReadonlySet<string> | undefined
  /** Our own servers that are off, and the settings that turn them on. */
  unavailable: readonly { name: string; why: string }[]
}

type Answer = ServersView | { status: ServerStateView } | { url: string }

const OFF: ServerStateView = { state: 'off', tools: [], problems: [] }
const IDLE: ServerStateView = { state: 'idle', tools: [], problems: [] }

export class ServerAdmin {
  readonly #parts: ServerAdminParts

  constructor(parts: ServerAdminParts) {
    this.#parts = parts
  }

  /** Throws `conflict`, `bad_request`, `forbidden`, `not_found`. */
  async answer(userId: string, actor: Actor, ask: McpServersAsk, signal: AbortSignal): Promise<Answer> {
    const { registry } = this.#parts
    const { of } = ask
    switch (ask.do) {
      case 'test': {
        const server = this.#server(of, userId, ask.id)
        const status = stateOf(server, server.setAsideFor(userId) ?? (await server.check(signal)))
        return { status: await this.#withSignIn(status, server.spec, userId) }
      }
      case 'sign_out':
        await this.#parts.signIns.signOut(this.#server(of, userId, ask.id).spec, userId)
        break
      case 'sign_in':
        return { url: await signInUrl(this.#server(of, userId, ask.id), signal) }
      case 'put': {
        const { do: _put, of: _of, id, revision, values, ...server } = ask
        await registry.put(of, userId, server, { id, revision, values }, actor)
        break
      }
      case 'remove':
        await registry.remove(of, userId, ask.id, actor)
        break
      case 'list':
    }
    return this.#view(of, userId)
  }

  async #view(of: ServerScope, userId: string): Promise<ServersView> {
    const { registry } = this.#parts
    const servers = registry.list(of, userId).map(async (entry) => {
      const { id, revision, server, hasClientSecret, spec } = entry
      const status = this.#statusOf(of, userId, entry)
      return {
        ...server,
        id,
        revision,
        hasClientSecret,
        status: spec === undefined ? status : await this.#withSignIn(status, spec, userId),
      }
    })
    return {
      servers: await Promise.all(servers),
      given: await (of === 'own' ? this.#givenTo(userId) : this.#configured(userId)),
      may: of === 'own' ? registry.may(userId) : 'local',
      most: registry.most(of),
    }
  }

  #statusOf(of: ServerScope, userId: string, { server, spec, why }: RegistryEntry): ServerStateView {
    if (!server.enabled) return { ...OFF, why }
    if (why !== undefined || spec === undefined) return { ...IDLE, state: 'unavailable', why }
    if (of === 'own' && this.#parts.registry.may(userId) === 'none')
      return { ...OFF, why: 'An administrator has not allowed servers of your own.' }
    return this.#standing(spec, userId)
  }

  #standing(spec: ServerSpec, userId: string): ServerStateView {
    const server = this.#parts.servers.serverOf(spec, userId)
    if (server === undefined) return IDLE
    const standing = server.setAsideFor(userId) ?? server.standing
    return typeof standing === 'string' ? { ...IDLE, state: standing } : stateOf(server, standing)
  }

  async #withSignIn(status: ServerStateView, spec: ServerSpec, userId: string): Promise<ServerStateView> {
    return { ...status, signedIn: await this.#parts.signIns.isSignedIn(spec, userId) }
  }

  /** The deployment's that this person may use. */
  #givenTo(userId: string): Promise<GivenServer[]> {
    return Promise.all(this.#allowed(userId).map((spec) => this.#given(spec, userId)))
  }

  async #configured(userId: string): Promise<GivenServer[]> {
    const { registry, unavailable } = this.#parts
    return [
      ...(await Promise.all(registry.configured.map((spec) => this.#given(spec, userId)))),
      ...unavailable.map(({ name, why }) => ({
        id: configuredId(name),
        name,
        place: 'included in Sandlot',
        status: { ...OFF, why },
      })),
    ]
  }

  async #given(spec: ServerSpec, userId: string): Promise<GivenServer> {
    const id = spec.added?.recordsAs ?? configuredId(spec.name)
    const status = await this.#withSignIn(this.#standing(spec, userId), spec, userId)
    return { id, name: spec.name, place: placeOf(spec), status }
  }

  #server(of: ServerScope, userId: string, id: string): McpServer {
    const { registry, servers } = this.#parts
    const known = of === 'own' ? [...registry.own(userId), ...this.#allowed(userId)] : registry.deployment
    const spec = known.find(({ name, added }) => (added?.recordsAs ?? configuredId(name)) === id)
    const server = spec === undefined ? undefined : servers.serverOf(spec, userId)
    if (server === undefined)
      throw new SandlotError('not_found', 'There is no such server, or it is switched off.')
    return server
  }

  #allowed(userId: string): ServerSpec[] {
    const withheld = this.#parts.withheld(userId)
    return this.#parts.registry.deployment.filter(({ name }) => withheld?.has(name) !== true)
  }
}

function configuredId(name: string): string {
  return `configured:${name}`
}

/** In words for people, without paths and parameters. */
function placeOf(spec: ServerSpec): string {
  if (spec.kind === 'http') return new URL(spec.config.url).origin
  return spec.config.where === 'sandbox' ? 'a program in your sandbox' : 'a program beside the agent'
}

async function signInUrl(server: McpServer, signal: AbortSignal): Promise<string> {
  const offered = await server.check(signal)
  if (offered.state === 'ready')
    throw new SandlotError('conflict', `${server.name} needs no sign-in: it is ready.`)
  if (offered.state === 'unavailable')
    throw new SandlotError('not_ready', `${server.name} cannot be used now: ${offered.why}.`)
  const url = signInLink(offered.signIn)
  if (url === undefined)
    throw new SandlotError(
      'bad_request',
      `${server.name} refuses the request and offers no sign-in: give it a header like Authorization.`,
    )
  return url
}

function stateOf({ problems }: McpServer, offered: Offered): ServerStateView {
  const tools = offered.state === 'ready' ? offered.tools : []
  return {
    state: offered.state,
    why: whyOf(offered),
    tools: tools.map(({ name, title, description, announcedReadOnly }) => ({
      name,
      title,
      description,
      announcedReadOnly,
    })),
    problems: [...problems],
  }
}

function whyOf(offered: Offered): string | undefined {
  if (offered.state === 'unavailable') return offered.why
  if (offered.state === 'needs_auth' && signInLink(offered.signIn) === undefined)
    return 'It refuses the request and offers no sign-in: give it a header like Authorization.'
  return undefined
}
