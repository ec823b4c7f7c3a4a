/**
 * The MCP servers that clients name for their sessions. The values given to them (headers,
 * environment) stay in memory, and are redacted in the log and in all results of their tools.
 */
import { statSync } from 'node:fs'
import type { McpServer } from '@agentclientprotocol/sdk'
import { SandlotError } from '@sandlot/shared/base/errors'
import { makeScrubber } from '@sandlot/shared/base/scrub'
import type { ServerState } from '../../mcp/servers.ts'
import type { Mcp } from '../../mcp/open-mcp.ts'
import type { ClientServer, ClientServerStatus } from '../../mcp/session-servers.ts'
import { withoutSecrets } from '../../people/call-secrets.ts'
import type { Session } from '../../session/session.ts'
import { type ToolRegistry, createRegistry } from '../../tools/registry.ts'
import { idOf, type Tool, type ToolOutcome } from '../../tools/tool.ts'
import type { Link } from './client-messages.ts'
import { secretsOf } from './client-secrets.ts'
import { type Notice, notificationText } from './foreign-client.ts'

interface ClientServersParts {
  mcp: Pick<
    Mcp,
    'setSessionServers' | 'closeSession' | 'toolsOf' | 'sessionServerStatus' | 'states' | 'signInEnded'
  >
  /** True if this user's prompts have tools now. */
  hasTools: (userId: string) => boolean
  /**
   * Set where the client started this agent on its user's machine: servers run there, with this
   * environment. Absent: they run in the user's sandbox.
   */
  hostEnvironment?: Readonly<Record<string, string>>
  /** Called with each value that the log must not show, and its session. */
  redact: (secret: string, sessionId: string) => void
}

/** The client whose servers these are. */
interface ServerOwner {
  /** Aborted when it has disconnected. */
  closed: AbortSignal
  /** Shows its user a notice. Never throws. */
  sendNotification: (notice: Notice) => void
  /** Shows its user a text, and offers to open the link. Never throws. */
  offerLink: (text: string, link: Link) => void
}

interface HeldServers {
  userId: string
  /** The client's name of each, by the first half of its tools' ids. */
  names: ReadonlyMap<string, string>
  owner: ServerOwner
  secrets: readonly string[]
  /** The last report about each unusable server. */
  readonly reported: Map<string, string>
  readonly cleaned: WeakMap<ToolRegistry, ToolRegistry>
  /** Aborted when the client has named others, or the session has ended. */
  readonly replaced: AbortController
}

/** Bytes of all server definitions of one client. */
const MAX_BYTES = 256 * 1024
/** Values to redact: each result is compared with all of them. */
const MAX_SECRETS = 100
const SHOWN_NAME = 80

const NO_TOOLS: Notice = {
  severity: 'warning',
  title: 'There are no tools here, so your MCP servers are not used',
}

export class ClientServers {
  readonly #parts: ClientServersParts
  readonly #held = new Map<string, HeldServers>()

  constructor(parts: ClientServersParts) {
    this.#parts = parts
  }

  /**
   * Replaces the session's servers, from its next prompt on. Returns a notice for each that can
   * never be used, or not before its user has tools; one that cannot be reached is reported with
   * the prompt. Throws `too_large`.
   */
  setServers(session: Session, servers: readonly McpServer[], owner: ServerOwner): Notice[] {
    const { mcp, redact } = this.#parts
    if (Buffer.byteLength(JSON.stringify(servers)) > MAX_BYTES)
      throw new SandlotError('too_large', `mcpServers may have ${MAX_BYTES} bytes; name fewer servers.`)
    const secrets = [...new Set(servers.flatMap(secretsOf))]
    if (secrets.length > MAX_SECRETS)
      throw new SandlotError(
        'too_large',
        `mcpServers may have ${MAX_SECRETS} secrets together (values of headers and variables that look like one), not ${secrets.length}; name fewer servers.`,
      )
    for (const secret of secrets) redact(secret, session.id)
    this.#held.get(session.id)?.replaced.abort()
    this.#held.delete(session.id)
    const results = mcp.setSessionServers(
      session.userId,
      session.id,
      servers.map((server) => this.#described(server, session)),
      // A running prompt may still call a replaced server.
      () => session.settled(),
    )
    const names = new Map(results.flatMap((one) => ('as' in one ? [[one.as, one.name] as const] : [])))
    if (names.size > 0) this.#hold(session, { names, owner, secrets })
    const noTools = servers.length > 0 && !this.#parts.hasTools(session.userId)
    return [
      ...(noTools ? [NO_TOOLS] : []),
      ...results.flatMap((one) => ('problem' in one ? [cannotBeUsed(one.name, one.problem)] : [])),
    ]
  }

  /**
   * All tools for a prompt that begins now. Reports unusable servers to their client. Never
   * rejects.
   */
  async toolsOf(userId: string, signal: AbortSignal, sessionId?: string): Promise<ToolRegistry> {
    const { mcp } = this.#parts
    const held = sessionId === undefined ? undefined : this.#held.get(sessionId)
    if (held === undefined || sessionId === undefined) return mcp.toolsOf(userId, signal, sessionId)
    const tools = await mcp.toolsOf(userId, signal, sessionId)
    if (!signal.aborted)
      report(held, mcp.sessionServerStatus(userId, sessionId), (link) => mcp.signInEnded(link))
    return cleaned(held, tools)
  }

  /** The state of every server for this session, under the names that users know. */
  async states({ userId, id }: Session, signal: AbortSignal): Promise<ServerState[]> {
    if (!this.#parts.hasTools(userId)) return []
    const held = this.#held.get(id)
    const states = await this.#parts.mcp.states(userId, signal, id)
    if (held === undefined) return states
    return states.map(({ why, ...state }) =>
      why === undefined ? state : { ...state, why: redacted(why, held.secrets) },
    )
  }

  /** Ends the servers of this user's session, which is closed or deleted. Never rejects. */
  async leave(userId: string, sessionId: string): Promise<void> {
    const held = this.#held.get(sessionId)
    if (held?.userId !== userId) return
    held.replaced.abort()
    this.#held.delete(sessionId)
    await this.#parts.mcp.closeSession(sessionId)
  }

  #hold(session: Session, about: Pick<HeldServers, 'names' | 'owner' | 'secrets'>): void {
    const { userId } = session
    const held: HeldServers = {
      ...about,
      userId,
      reported: new Map(),
      cleaned: new WeakMap(),
      replaced: new AbortController(),
    }
    this.#held.set(session.id, held)
    const { closed } = about.owner
    const gone = (): void => void this.#closeWhenIdle(session, held)
    // A signal that aborted while the session was loading fires no event.
    if (closed.aborted) gone()
    else closed.addEventListener('abort', gone, { once: true, signal: held.replaced.signal })
  }

  /** Ends the servers of a disconnected client once the running prompt has ended. Never rejects. */
  async #closeWhenIdle(session: Session, held: HeldServers): Promise<void> {
    await session.settled()
    if (this.#held.get(session.id) === held) await this.leave(held.userId, session.id)
  }

  #described(server: McpServer, { cwd }: Session): ClientServer {
    const { name } = server
    if ('url' in server) return { name, url: server.url, headers: record(server.headers) }
    const { command, args } = server
    const env = record(server.env)
    const { hostEnvironment } = this.#parts
    if (hostEnvironment === undefined) return { name, command, args, env, where: 'sandbox' }
    const folder = isFolder(cwd) ? { cwd } : {}
    return { name, command, args, env, baseEnv: hostEnvironment, ...folder, where: 'deployment' }
  }
}

function record(pairs: readonly { name: string; value: string }[]): Record<string, string> {
  return Object.fromEntries(pairs.map(({ name, value }) => [name, value]))
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function report(
  { names, reported, owner, secrets }: HeldServers,
  states: readonly ClientServerStatus[],
  signInEnded: (link: string) => AbortSignal,
): void {
  for (const state of states) {
    const name = names.get(state.name)
    if (name === undefined) continue
    const { link } = state
    const notice = link === undefined ? redactedNotice(noticeFor(name, state), secrets) : undefined
    const news = link ?? (notice === undefined ? undefined : notificationText(notice))
    const before = reported.get(name)
    if (news === undefined) reported.delete(name)
    else reported.set(name, news)
    if (news === before) continue
    if (link !== undefined)
      owner.offerLink(redacted(signInText(name), secrets), { url: link, completed: signInEnded(link) })
    else if (notice !== undefined) owner.sendNotification(notice)
    else
      owner.sendNotification({ severity: 'info', title: `The MCP server ${shown(name)} can be used again` })
  }
}

const looksSecret = makeScrubber([])

function redacted(text: string, secrets: readonly string[]): string {
  return looksSecret(withoutSecrets(text, secrets))
}

function redactedNotice(notice: Notice | undefined, secrets: readonly string[]): Notice | undefined {
  if (notice === undefined) return undefined
  const { title, description } = notice
  const more = description === undefined ? {} : { description: redacted(description, secrets) }
  return { ...notice, title: redacted(title, secrets), ...more }
}

function noticeFor(name: string, { state, why, problems }: ClientServerStatus): Notice | undefined {
  // The time until the next attempt changes constantly and is not reported again.
  if (state === 'unavailable')
    return cannotBeUsed(name, why?.replace(/; it is tried again in \d+ s$/, '') ?? 'the reason is unknown')
  if (state === 'needs_auth') return cannotBeUsed(name, 'it wants a sign-in; give it a token in its headers')
  const [problem, ...others] = problems
  if (problem === undefined) return undefined
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`
  return {
    severity: 'warning',
    title: `The MCP server ${shown(name)} has tools that cannot be used`,
    description: `${problem}${more}`,
  }
}

function signInText(name: string): string {
  return `The MCP server ${shown(name)} wants you to sign in. Its tools are there with your next message after that.`
}

function cannotBeUsed(name: string, why: string): Notice {
  const title = `The MCP server ${shown(name)} cannot be used`
  return { severity: 'warning', title, description: why.replace(/\.$/, '') }
}

function shown(name: string): string {
  return `“${name.replaceAll(/\p{C}/gu, ' ').slice(0, SHOWN_NAME)}”`
}

/** The registry with the client's secrets redacted in results of its servers' tools. Memoized. */
function cleaned(held: HeldServers, tools: ToolRegistry): ToolRegistry {
  if (held.secrets.length === 0) return tools
  const known = held.cleaned.get(tools)
  if (known !== undefined) return known
  const registry = createRegistry()
  registry.register(
    ...tools.listTools().map((tool) => {
      const id = idOf(tool)
      const [server = ''] = id.split('::')
      return id.includes('::') && held.names.has(server) ? cleanTool(tool, held.secrets) : tool
    }),
  )
  held.cleaned.set(tools, registry)
  return registry
}

function cleanTool(tool: Tool, secrets: readonly string[]): Tool {
  return {
    ...tool,
    description: withoutSecrets(tool.description, secrets),
    async *execute(args, ctx) {
      const running = tool.execute(args, ctx)
      let over = false
      try {
        for (;;) {
          const next = await running.next()
          over = next.done === true
          if (next.done === true) return withoutSecrets(next.value, secrets)
          yield withoutSecrets(next.value, secrets)
        }
      } catch (error) {
        over = true
        if (error instanceof Error) error.message = withoutSecrets(error.message, secrets)
        throw error
      } finally {
        if (!over) await running.return(ABANDONED)
      }
    },
  }
}

/** The return value of an abandoned call, which is discarded. */
const ABANDONED: ToolOutcome = { status: 'failed', reason: 'interrupted', forModel: '' }
