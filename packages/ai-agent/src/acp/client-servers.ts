/**
 * The MCP servers that clients name for their sessions. What they are given (headers, environment) is held in memory, is
 * hidden in the log, and is taken out of whatever their tools say.
 */
import { statSync } from 'node:fs'
import type { McpServer } from '@agentclientprotocol/sdk'
import { SandlotError } from '@sandlot/shared/errors'
import { makeScrubber } from '@sandlot/shared/scrub'
import type { ServerState } from '../mcp/servers.ts'
import type { Mcp } from '../mcp/open-mcp.ts'
import type { BroughtServer, BroughtStanding } from '../mcp/session-servers.ts'
import { withoutSecrets } from '../secrets/call-secrets.ts'
import type { Session } from '../session/session.ts'
import { type ToolRegistry, createRegistry } from '../tools/registry.ts'
import type { Tool, ToolOutcome } from '../tools/tool.ts'
import type { Link } from './client-messages.ts'
import { secretsOf } from './client-secrets.ts'
import { type Note, wordsOf } from './foreign-client.ts'

export interface ClientServersParts {
  mcp: Pick<Mcp, 'bring' | 'leaveSession' | 'toolsOf' | 'standing' | 'states' | 'signInOver'>
  /**
   * Where this agent is a program that the client started, on its user's machine: what programs there get of its
   * environment, and they run there. Absent: they run in the user's sandbox.
   */
  beside?: Readonly<Record<string, string>>
  /** Hears every value that the log must not show, and of which session. */
  hide: (secret: string, sessionId: string) => void
}

/** The client that names them. */
export interface Bringer {
  /** Aborted when it is gone. */
  closed: AbortSignal
  /** Tell its user something. Never throws. */
  tell: (note: Note) => void
  /** Tell them, and offer to open the link. Never throws. */
  offer: (text: string, link: Link) => void
}

interface Held {
  userId: string
  /** By the first half of their tools' ids: what the client calls them. */
  names: ReadonlyMap<string, string>
  bringer: Bringer
  secrets: readonly string[]
  /** What was said last of each that cannot be used. */
  readonly said: Map<string, string>
  readonly cleaned: WeakMap<ToolRegistry, ToolRegistry>
  /** Aborted when others have taken their place. */
  readonly over: AbortController
}

/** Bytes of all that a client says about its servers. */
const MAX_BYTES = 256 * 1024
/** Values to hide: every word that comes back is compared with each. */
const MAX_SECRETS = 100
const SHOWN_NAME = 80

export class ClientServers {
  readonly #parts: ClientServersParts
  readonly #held = new Map<string, Held>()

  constructor(parts: ClientServersParts) {
    this.#parts = parts
  }

  /**
   * From its next prompt on the session has these servers, in place of those that were named before. Answers a note
   * for each that can never be used; of one that cannot be reached its client hears with the prompt. Throws `too_large`.
   */
  bring(session: Session, servers: readonly McpServer[], bringer: Bringer): Note[] {
    const { mcp, hide } = this.#parts
    if (Buffer.byteLength(JSON.stringify(servers)) > MAX_BYTES)
      throw new SandlotError('too_large', `mcpServers may have ${MAX_BYTES} bytes; name fewer servers.`)
    const secrets = [...new Set(servers.flatMap(secretsOf))]
    if (secrets.length > MAX_SECRETS)
      throw new SandlotError(
        'too_large',
        `mcpServers may have ${MAX_SECRETS} secrets together (values of headers and variables that look like one), not ${secrets.length}; name fewer servers.`,
      )
    for (const secret of secrets) hide(secret, session.id)
    this.#held.get(session.id)?.over.abort()
    this.#held.delete(session.id)
    const usable = servers.filter((server) => !isSse(server))
    const brought = mcp.bring(
      session.userId,
      session.id,
      usable.map((server) => this.#described(server, session)),
      // A call of the prompt that runs may be with one of those before.
      () => session.settled(),
    )
    const names = new Map(brought.flatMap((one) => ('as' in one ? [[one.as, one.name] as const] : [])))
    if (names.size > 0) this.#hold(session, { names, bringer, secrets })
    return [
      ...servers.filter(isSse).map(({ name }) => cannot(name, 'it speaks the old SSE, not streamable HTTP')),
      ...brought.flatMap((one) => ('problem' in one ? [cannot(one.name, one.problem)] : [])),
    ]
  }

  /** All tools for a prompt that begins now. The client hears of each of its servers that cannot be used. Never rejects. */
  async toolsOf(userId: string, signal: AbortSignal, sessionId?: string): Promise<ToolRegistry> {
    const { mcp } = this.#parts
    const held = sessionId === undefined ? undefined : this.#held.get(sessionId)
    if (held === undefined || sessionId === undefined) return mcp.toolsOf(userId, signal, sessionId)
    const tools = await mcp.toolsOf(userId, signal, sessionId)
    if (!signal.aborted) tell(held, mcp.standing(userId, sessionId), (link) => mcp.signInOver(link))
    return cleaned(held, tools)
  }

  /** How every server stands for this session now, under the names that people know. */
  async states({ userId, id }: Session, signal: AbortSignal): Promise<ServerState[]> {
    const held = this.#held.get(id)
    const states = await this.#parts.mcp.states(userId, signal, id)
    if (held === undefined) return states
    return states.map(({ why, ...state }) =>
      why === undefined ? state : { ...state, why: hidden(why, held.secrets) },
    )
  }

  /** This user's session is closed or deleted: its servers end. Never rejects. */
  async leave(userId: string, sessionId: string): Promise<void> {
    const held = this.#held.get(sessionId)
    if (held?.userId !== userId) return
    held.over.abort()
    this.#held.delete(sessionId)
    await this.#parts.mcp.leaveSession(sessionId)
  }

  #hold(session: Session, about: Pick<Held, 'names' | 'bringer' | 'secrets'>): void {
    const { userId } = session
    const held: Held = {
      ...about,
      userId,
      said: new Map(),
      cleaned: new WeakMap(),
      over: new AbortController(),
    }
    this.#held.set(session.id, held)
    const { closed } = about.bringer
    const gone = (): void => void this.#outlive(session, held)
    // One that has left while its session was loaded does not leave again.
    if (closed.aborted) gone()
    else closed.addEventListener('abort', gone, { once: true, signal: held.over.signal })
  }

  /** Its client is gone: what runs may finish with them. Never rejects. */
  async #outlive(session: Session, held: Held): Promise<void> {
    await session.settled()
    if (this.#held.get(session.id) === held) await this.leave(held.userId, session.id)
  }

  #described(server: McpServer, { cwd }: Session): BroughtServer {
    const { name } = server
    if ('url' in server) return { name, url: server.url, headers: record(server.headers) }
    const { command, args } = server
    const env = record(server.env)
    const { beside } = this.#parts
    if (beside === undefined) return { name, command, args, env, where: 'sandbox' }
    const folder = isFolder(cwd) ? { cwd } : {}
    return { name, command, args, env, around: beside, ...folder, where: 'deployment' }
  }
}

function isSse(server: McpServer): boolean {
  return 'type' in server && server.type === 'sse'
}

function record(pairs: readonly { name: string; value: string }[]): Record<string, string> {
  return Object.fromEntries(pairs.map(({ name, value }) => [name, value]))
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function tell(
  { names, said, bringer, secrets }: Held,
  states: readonly BroughtStanding[],
  over: (link: string) => AbortSignal,
): void {
  for (const state of states) {
    const name = names.get(state.name)
    if (name === undefined) continue
    const { link } = state
    const note = link === undefined ? withoutSecretsIn(noteFor(name, state), secrets) : undefined
    const news = link ?? (note === undefined ? undefined : wordsOf(note))
    const before = said.get(name)
    if (news === undefined) said.delete(name)
    else said.set(name, news)
    if (news === before) continue
    if (link !== undefined) bringer.offer(hidden(wantsSignIn(name), secrets), { url: link, over: over(link) })
    else if (note !== undefined) bringer.tell(note)
    else bringer.tell({ severity: 'info', title: `The MCP server ${shown(name)} can be used again` })
  }
}

const looksSecret = makeScrubber([])

function hidden(text: string, secrets: readonly string[]): string {
  return looksSecret(withoutSecrets(text, secrets))
}

function withoutSecretsIn(note: Note | undefined, secrets: readonly string[]): Note | undefined {
  if (note === undefined) return undefined
  const { title, description } = note
  const more = description === undefined ? {} : { description: hidden(description, secrets) }
  return { ...note, title: hidden(title, secrets), ...more }
}

function noteFor(name: string, { state, why, problems }: BroughtStanding): Note | undefined {
  // When it is tried again changes all the time, and is no news.
  if (state === 'unavailable')
    return cannot(name, why?.replace(/; it is tried again in \d+ s$/, '') ?? 'nobody knows why')
  if (state === 'needs_auth') return cannot(name, 'it wants a sign-in; give it a token in its headers')
  const [problem, ...others] = problems
  if (problem === undefined) return undefined
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`
  return {
    severity: 'warning',
    title: `The MCP server ${shown(name)} has tools that cannot be used`,
    description: `${problem}${more}`,
  }
}

function wantsSignIn(name: string): string {
  return `The MCP server ${shown(name)} wants you to sign in. Its tools are there with your next message after that.`
}

function cannot(name: string, why: string): Note {
  const title = `The MCP server ${shown(name)} cannot be used`
  return { severity: 'warning', title, description: why.replace(/\.$/, '') }
}

function shown(name: string): string {
  return `“${name.replaceAll(/\p{C}/gu, ' ').slice(0, SHOWN_NAME)}”`
}

/** The registry with the tools of the client's servers in which its secrets never come back. The same for the same. */
function cleaned(held: Held, tools: ToolRegistry): ToolRegistry {
  if (held.secrets.length === 0) return tools
  const known = held.cleaned.get(tools)
  if (known !== undefined) return known
  const registry = createRegistry()
  registry.register(
    ...tools.listTools().map((tool) => {
      const [server = ''] = tool.id.split('::')
      return tool.id.includes('::') && held.names.has(server) ? cleanTool(tool, held.secrets) : tool
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
        if (!over) await running.return(NOBODY_WAITS)
      }
    },
  }
}

/** What a call that is let go of returns to nobody. */
const NOBODY_WAITS: ToolOutcome = { status: 'failed', reason: 'interrupted', forModel: '' }
