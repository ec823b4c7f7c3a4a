/**
 * An ACP agent at the wire, for tests of the service: the SDK's `agent()` on a real Unix socket, with a real sessions.db.
 * What a prompt does is a script of the test. It joins replay and live tail as ai-agent does, per connection.
 */
import type { Budget } from '@sandlot/shared/admin/usage'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { mkdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { PROTOCOL_VERSION, RequestError, agent, methods } from '@agentclientprotocol/sdk'
import type { AgentContext, AnyMessage } from '@agentclientprotocol/sdk'
import {
  EXT,
  STREAM_PATH,
  approvalsParams,
  approveParams,
  cancelCallParams,
  exportPromptParams,
  removePersonParams,
  forkParams,
  renameParams,
  mcpSignInParams,
  loadSessionMeta,
  newSessionMeta,
  promptMeta,
  overviewParams,
  unqueueParams,
  commentParams,
  sharesParams,
  snapshotsParams,
  budgetsParams,
  putPersonParams,
  settingsParams,
  teamSeedsParams,
  typingParams,
} from '@sandlot/shared/acp/meta'
import { type McpServersAsk, mcpServersParams } from '@sandlot/shared/admin/mcp-servers'
import type { AgentMetricsAnswer, AgentStatus, SettingsAnswer, SettingsAsk } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { SandlotError } from '@sandlot/shared/base/errors'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { makeSandlotEvent, metaOf, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import type { EndReason } from '@sandlot/shared/chat/reasons'
import type { MetaFields } from '@sandlot/shared/chat/event-meta'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import type { EventOf, SessionEvent } from '@sandlot/shared/chat/events'
import { STOP_REASON_OF } from '@sandlot/shared/chat/reasons'
import { mode } from '@sandlot/shared/chat/mode'
import { type SettingsView, effectiveSettings } from '@sandlot/shared/account/agent-settings'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import type { MessageImage } from '@sandlot/shared/chat/images'
import { configurationParams } from '@sandlot/shared/admin/configuration'
import { deploymentRulesParams } from '@sandlot/shared/admin/deployment-rules'
import { type AgentSandboxes, type SandboxesAsk, sandboxesParams } from '@sandlot/shared/admin/sandboxes'
import { toolStatsParams } from '@sandlot/shared/admin/tool-stats'
import { rulesParams } from '@sandlot/shared/account/rules-api'
import { pendingApprovals } from '@sandlot/shared/chat/pending-approvals'
import { newId } from '@sandlot/shared/base/ids'
import { instructionsParams } from '@sandlot/shared/account/instructions'
import { execParams } from '@sandlot/shared/workspace/exec'
import { type PortsAsk, portsParams } from '@sandlot/shared/workspace/ports'
import { type TerminalsAsk, terminalsParams } from '@sandlot/shared/workspace/terminals'
import { filesParams } from '@sandlot/shared/workspace/files'
import { secretsParams } from '@sandlot/shared/account/secrets'
import { accessBy } from '@sandlot/storage/shares/shares'
import { openSessionStore } from '@sandlot/storage/store/open'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import type { Effects } from '@sandlot/storage/tables/records'
import { deploymentSettings } from '../../../shared/test/support/deployment-settings.ts'
import { ScriptedFiles } from './scripted-files.ts'
import { InOrder } from '../../src/chat/in-order.ts'
import { WebSocketServer } from 'ws'
import type { WebSocket } from 'ws'
import { z } from 'zod'

const userMeta = newSessionMeta.pick({ user: true })

/** Abilities of a script while its prompt runs. Returning ends the prompt. */
export interface Turn {
  sessionId: string
  text: string
  unattended: boolean
  onError: 'continue' | 'stop' | undefined
  /** Aborts on cancel. */
  cancelled: AbortSignal
  /** Store an event and send it. */
  settle(event: (meta: (fields?: MetaFields) => SessionEvent['_meta']) => SessionEvent): Promise<void>
  /** Send a live event. */
  live(event: (meta: (fields?: MetaFields) => SessionEvent['_meta']) => SessionEvent): void
  say(text: string): Promise<void>
  happen(event: SandlotEvent): Promise<void>
  /** Resolves with the option that was chosen. */
  approval(toolCallId: string): Promise<string>
}

export type Script = (turn: Turn) => Promise<EndReason | undefined>

/** Repeats its message. */
export const answering: Script = async (turn) => {
  await turn.say(`You said ${turn.text}`)
  return 'completed'
}

const withSandlot = <S extends z.ZodType>(shape: S, meta: unknown): z.output<S> => {
  const parsed = z.object({ sandlot: shape }).parse(meta) as { sandlot: z.output<S> }
  return parsed.sandlot
}

/** Everybody's settings. */
const DEPLOYMENT = deploymentSettings({ models: ['scripted', 'small'] })

export class ScriptedAgent {
  script: Script = answering
  /** Replaces the answer to a prompt's request: the SDK sends anything. */
  answered: (result: object) => object = (result) => result
  /** Awaited before a load is answered. */
  beforeLoad: () => Promise<void> = () => Promise.resolve()
  /** Awaited before anything that is asked about a session. */
  beforeOwned: () => Promise<void> = () => Promise.resolve()
  status: AgentStatus = {
    ready: true,
    reasons: [{ part: 'engine', ok: true, message: 'the engine answers' }],
    model: { name: 'scripted', demo: true },
    defaultMode: 'auto-edit',
  }
  /** True if this user's sessions are here, and not at another agent. */
  has: (userId: string) => boolean = () => true
  /** Requests and notifications in order of arrival, but the handshake. */
  readonly received: string[] = []
  /** Pieces that an exported record has behind its document: white space. */
  exportedAfter: Iterable<string> = []
  /** Undefined: it does not count. */
  metrics: AgentMetricsAnswer | undefined
  /** Awaited before a removal is answered; what it throws refuses it. */
  beforeRemoval: (userId: string) => Promise<void> = () => Promise.resolve()
  /** By user, then by name. */
  /** Users with a sandbox. */
  readonly sandboxOwners = new Set<string>()
  readonly instructions = new Map<string, string>()
  /** Settings of teams and people, by `kind:id`. */
  readonly settings = new Map<string, SettingsView>()
  budgets: Budget[] = []
  /** Teams of its configuration file. */
  teamSeeds: { id: string; name: string; members: string[] }[] = []
  readonly secrets = new Map<string, Map<string, string>>()
  readonly files = new ScriptedFiles()
  /** Streams by ticket. */
  readonly streams = new Map<string, (socket: WebSocket) => void>()
  /** Answers a request about ports. */
  ports: (user: AgentUser, ask: PortsAsk) => object = () => ({ awake: false, ports: [] })
  /** Answers a request about terminals. */
  terminals: (user: AgentUser, ask: TerminalsAsk) => object = () => ({ terminals: [] })
  /** Answers a request about MCP servers. */
  mcpServers: (user: AgentUser, ask: McpServersAsk) => object = () => ({
    servers: [],
    given: [],
    may: 'public',
    most: 20,
  })
  /** Answers a request about a command. */
  exec: (params: z.output<typeof execParams>) => object = () => {
    throw refusal('not_implemented', 'This script runs no commands.')
  }
  readonly store: SessionStore
  readonly #socketPath: string
  #server: Server | undefined
  #sockets: WebSocketServer | undefined
  readonly #followers = new Map<string, Set<AgentContext>>()
  readonly #clients = new Set<AgentContext>()
  readonly #running = new Map<string, AbortController>()
  /** By session and call. */
  readonly #answers = new Map<string, (optionId: string) => void>()
  /** ai-agent does this: requests to one session take effect in their order. */
  readonly #admitted = new InOrder(1000)

  private constructor(store: SessionStore, socketPath: string) {
    this.store = store
    this.#socketPath = socketPath
  }

  static async start(databasePath: string, socketPath: string): Promise<ScriptedAgent> {
    const made = new ScriptedAgent(await openSessionStore(databasePath), socketPath)
    await made.listen()
    return made
  }

  async listen(): Promise<void> {
    await mkdir(dirname(this.#socketPath), { recursive: true })
    await rm(this.#socketPath, { force: true })
    const server = createServer()
    this.#server = server
    const sockets = new WebSocketServer({ noServer: true })
    this.#sockets = sockets
    server.on('upgrade', (request, socket, head) => {
      const ticket = request.url?.startsWith(STREAM_PATH) === true && request.url.slice(STREAM_PATH.length)
      const stream = ticket === false ? undefined : this.streams.get(ticket)
      if (ticket !== false) this.streams.delete(ticket)
      if (ticket !== false && stream === undefined) return void socket.end('HTTP/1.1 404 Not Found\r\n\r\n')
      sockets.handleUpgrade(request, socket, head, stream ?? ((opened) => this.#serve(opened)))
    })
    await new Promise<void>((resolve) => server.listen(this.#socketPath, resolve))
  }

  /** Acts like a move of a person to another agent, for their readers. */
  cut(): void {
    for (const socket of this.#sockets?.clients ?? []) socket.terminate()
  }

  /** Acts like a crash, for its clients: sockets and prompts end, stored data stays. */
  async drop(): Promise<void> {
    for (const socket of this.#sockets?.clients ?? []) socket.terminate()
    this.#sockets?.close()
    const server = this.#server
    this.#server = undefined
    this.#followers.clear()
    this.#clients.clear()
    if (server !== undefined) await new Promise((resolve) => server.close(resolve))
  }

  async close(): Promise<void> {
    for (const stop of this.#running.values()) stop.abort()
    await this.drop()
    await this.store.close()
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#sockets?.clients.size ?? 0
  }

  sendRaw(method: string, params: object): void {
    for (const client of this.#clients) void client.notify(method, params)
  }

  async changed(sessionId: string, deleted = false): Promise<void> {
    const row = await this.store.sessions.get(sessionId)
    if (row === undefined) return
    const { title, updatedAt, mode, runningPromptId, waiting } = row
    const summary: SessionSummary = {
      sessionId,
      title,
      updatedAt,
      mode,
      running: runningPromptId !== null,
      waiting,
      ...(deleted ? { deleted: true as const } : {}),
    }
    this.sendRaw(EXT.sessionChanged, { userId: row.userId, summary })
  }

  /** ai-agent's rows, without the checks of settings. */
  #sandboxes(ask: SandboxesAsk): AgentSandboxes | object {
    this.received.push(`sandboxes ${ask.do}${'userId' in ask ? ` ${ask.userId}` : ''}`)
    if (ask.do === 'use') return { uses: {} }
    if (ask.do !== 'list') return {}
    return {
      image: 'sandlot/sandbox',
      limits: { cpus: 2, memory: 1, processes: 1, disk: 1 },
      sandboxes: [...this.sandboxOwners].map((userId) => ({ userId, state: 'stopped' as const })),
      warm: 2,
      ownerless: ['volume-of-nobody'],
    }
  }

  #settings(user: AgentUser, ask: SettingsAsk): SettingsAnswer {
    const viewOf = (key: string): SettingsView => this.settings.get(key) ?? { settings: {}, revision: 0 }
    const effective = (id: string, teams: readonly string[], email = ''): SettingsAnswer => ({
      effective: effectiveSettings(
        DEPLOYMENT,
        teams.map((team) => ({ id: team, name: team, settings: viewOf(`team:${team}`).settings })),
        { ...viewOf(`person:${email}`).settings, ...viewOf(`person:${id}`).settings },
      ),
    })
    if (ask.do === 'own') return effective(user.id, user.teams ?? [], user.email)
    if (user.role !== 'admin')
      throw new RequestError(-32_600, 'Only an administrator.', { code: 'forbidden' })
    if (ask.do === 'effective') return effective(ask.userId, ask.teams, ask.email)
    if (ask.do === 'list') return { all: [] }
    const key = `${ask.subject.kind}:${ask.subject.id}`
    this.received.push(`settings ${ask.do} ${ask.subject.kind}`)
    if (ask.do === 'get') {
      const { effective: without } = effective('', ask.teams ?? [])
      const { models, mcpServers } = DEPLOYMENT
      return {
        view: viewOf(key),
        without,
        offered: { models: [...models], mcpServers: [...mcpServers], tools: ['run_shell_command'] },
      }
    }
    if (ask.do === 'remove') this.settings.delete(key)
    if (ask.do !== 'put') return {}
    const { revision } = viewOf(key)
    if (ask.revision !== revision) return { conflict: viewOf(key) }
    this.settings.set(key, { settings: ask.settings, revision: revision + 1 })
    return { view: viewOf(key) }
  }

  #serve(socket: WebSocket): void {
    const readable = new ReadableStream<AnyMessage>({
      start(controller) {
        socket.on('message', (data: Buffer) => controller.enqueue(JSON.parse(data.toString()) as AnyMessage))
        socket.once('close', () => controller.close())
      },
    }).pipeThrough(
      // The real one does this: handlers begin in the order of the messages.
      new TransformStream<AnyMessage, AnyMessage>({
        async transform(message, controller) {
          controller.enqueue(message)
          await turn()
        },
      }),
    )
    const writable = new WritableStream<AnyMessage>({
      write: (message) => {
        if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message))
      },
    })
    // Handlers get a context of their own per request; whom to send to is the connection's.
    let client: AgentContext | undefined
    const connection = this.#app(() => client).connect({ readable, writable })
    client = connection.client
    const { closed } = connection
    this.#clients.add(connection.client)
    void closed.then(() => {
      this.#clients.delete(connection.client)
      for (const followers of this.#followers.values()) followers.delete(connection.client)
    })
  }

  #app(me: () => AgentContext | undefined) {
    const { agent: on, client: to } = methods
    return agent({ name: 'scripted' })
      .onRequest(on.initialize, ({ params }) => {
        z.object({ _meta: z.object({ sandlot: z.object({ version: z.literal(1) }) }) }).parse(
          params.clientCapabilities,
        )
        return { protocolVersion: PROTOCOL_VERSION, agentCapabilities: { loadSession: true } }
      })
      .onRequest(on.session.new, async ({ params }) => {
        const meta = withSandlot(newSessionMeta, params._meta)
        const { user, sessionId = newId('s'), defaultMode = 'auto-edit', model, thoughtLevel } = meta
        const mode = meta.mode ?? defaultMode
        const saidMode = meta.mode === undefined && meta.defaultMode !== undefined ? `default ${mode}` : mode
        this.#refuseForeign(user.id)
        this.received.push(['new', sessionId, saidMode, model, thoughtLevel].filter(Boolean).join(' '))
        await guarded(() =>
          this.store.sessions.create({
            id: sessionId,
            userId: user.id,
            cwd: params.cwd,
            mode,
            at: Date.now(),
          }),
        )
        this.#follow(sessionId, me())
        return { sessionId }
      })
      .onRequest(on.session.load, async ({ params, client }) => {
        const { user, after } = withSandlot(loadSessionMeta, params._meta)
        this.received.push(`load ${params.sessionId} ${after}`)
        await this.#owned(user.id, params.sessionId)
        await this.beforeLoad()
        let upTo = after
        for (;;) {
          const log = await this.store.log.read(params.sessionId, upTo)
          for (const update of log)
            void client.notify(to.session.update, { sessionId: params.sessionId, update: wire(update) })
          // A long log is read in turns of the event loop, and may have grown in between.
          const last = log.at(-1)
          if (last === undefined) break
          upTo = seqOf(last) ?? upTo
        }
        this.#follow(params.sessionId, me())
        return {}
      })
      .onRequest(on.session.setConfigOption, async ({ params }) => {
        const { user } = withSandlot(userMeta, params._meta)
        await this.#admit(
          user.id,
          params.sessionId,
          `option ${params.sessionId} ${params.configId} ${String(params.value)}`,
        )
        return { configOptions: [] }
      })
      .onRequest(on.session.setMode, async ({ params }) => {
        const { user } = withSandlot(userMeta, params._meta)
        const currentModeId: Mode = mode.parse(params.modeId)
        await this.#admit(user.id, params.sessionId, `mode ${params.sessionId} ${currentModeId}`)
        await this.#settle(params.sessionId, {
          sessionUpdate: 'current_mode_update',
          currentModeId,
          _meta: makeMeta({}, Date.now()),
        })
        return {}
      })
      .onRequest(on.session.delete, async ({ params }) => {
        await this.#owned(withSandlot(userMeta, params._meta).user.id, params.sessionId)
        this.received.push(`delete ${params.sessionId}`)
        await this.changed(params.sessionId, true)
        await this.store.sessions.remove(params.sessionId)
        return {}
      })
      .onRequest(on.session.prompt, async ({ params, client }) => {
        const meta = withSandlot(promptMeta, params._meta)
        const text = params.prompt.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join()
        const images = params.prompt.filter((block) => block.type === 'image')
        if (text === '' && images.length === 0) throw refusal('bad_request', 'The message is empty.')
        await this.#admit(meta.user.id, params.sessionId, `prompt ${params.sessionId} ${text}`)
        return this.#prompt(params.sessionId, { text, images }, meta, me() ?? client)
      })
      .onNotification(on.session.cancel, async ({ params }) => {
        const { user } = withSandlot(userMeta, params._meta)
        await this.#admit(user.id, params.sessionId, `cancel ${params.sessionId}`)
        this.#running.get(params.sessionId)?.abort()
      })
      .onRequest(EXT.cancelCall, cancelCallParams, async ({ params }) => {
        await this.#owned(params.user.id, params.sessionId)
        this.received.push(`cancel_call ${params.sessionId} ${params.toolCallId}`)
        return {}
      })
      .onRequest(EXT.unqueue, unqueueParams, async ({ params }) => {
        await this.#owned(params.user.id, params.sessionId)
        this.received.push(`unqueue ${params.sessionId} ${params.messageId}`)
        return { why: params.messageId === 'm_read' ? 'sent' : 'withdrawn' }
      })
      .onRequest(EXT.approve, approveParams, async ({ params }) => {
        await this.#owned(params.user.id, params.sessionId)
        const rules = params.mayMakeRules ? '' : ' and no rule'
        const changed = params.input === undefined ? '' : ` with ${JSON.stringify(params.input)}`
        this.received.push(`approve ${params.toolCallId} ${params.optionId}${rules}${changed}`)
        const key = `${params.sessionId} ${params.toolCallId}`
        const answer = this.#answers.get(key)
        if (answer === undefined) return { answered: false, by: 'user' }
        this.#answers.delete(key)
        answer(params.optionId)
        return { answered: true }
      })
      .onRequest(EXT.approvals, approvalsParams, async ({ params }) => {
        await this.#owned(params.user.id, params.sessionId)
        return { approvals: pendingApprovals(await this.store.log.read(params.sessionId)) }
      })
      .onRequest(EXT.rules, rulesParams, async ({ params: { user, ask } }) => {
        const { rules } = this.store.people
        const made = { id: 'rule_1', createdAt: 1 }
        if (ask.do === 'add') {
          await rules.add(user.id, { ...ask.rule, ...made })
          return { ...ask.rule, ...made, origin: 'user' }
        }
        if (ask.do === 'preview') return { looked: 1, changed: [], changedCount: 0 }
        if (ask.do === 'asked') return { days: 30, asked: 3, saving: [] }
        if (ask.do === 'list') return { rules: await rules.list(user.id), deployment: [], remember: 'always' }
        if (await rules.revoke(user.id, ask.id)) return {}
        throw refusal('not_found', 'There is no such rule of yours.')
      })
      .onRequest(EXT.toolStats, toolStatsParams, () => ({ since: 7, tools: [] }))
      .onRequest(EXT.configuration, configurationParams, () => ({ settings: [] }))
      .onRequest(EXT.overview, overviewParams, ({ params: { ask } }) => {
        this.received.push(`overview ${ask.do}`)
        return {
          findings: [
            { id: 'image', group: 'must', name: 'Sandbox image', message: 'x:1', state: 'ok' },
            { id: 'node', group: 'must', name: 'Node', message: process.version, state: 'ok' },
          ],
        }
      })
      .onRequest(EXT.sandboxes, sandboxesParams, ({ params: { ask } }) => this.#sandboxes(ask))
      .onRequest(EXT.deploymentRules, deploymentRulesParams, ({ params: { ask } }) => {
        this.received.push(`deployment_rules ${ask.do}`)
        if (ask.do === 'list') return { configured: [], rules: [] }
        return ask.do === 'add' ? { id: 'rule_1', origin: 'deployment', createdAt: 1, ...ask.rule } : {}
      })
      .onRequest(EXT.rename, renameParams, async ({ params: { user, sessionId, title } }) => {
        await this.#owned(user.id, sessionId)
        this.received.push(`rename ${sessionId} ${title}`)
        return {}
      })
      .onRequest(EXT.fork, forkParams, async ({ params }) => {
        const { user, sessionId, promptId, where } = params
        await this.#owned(user.id, sessionId)
        this.received.push(`fork ${sessionId} ${promptId} ${where}`)
        return { sessionId: `${sessionId}_fork` }
      })
      .onRequest(EXT.shares, sharesParams, async ({ params: { user, sessionId, ask } }) => {
        await this.#owned(user.id, sessionId)
        const { shares } = this.store
        const made = { id: newId('r'), createdAt: Date.now() }
        if (ask.do === 'put') await shares.put(sessionId, { ...ask.share, ...made }, user.id)
        if (ask.do === 'remove' && (await shares.remove(sessionId, ask.id)) === undefined)
          throw refusal('not_found', 'There is no such share.')
        return { shares: await shares.of(sessionId) }
      })
      .onRequest(EXT.snapshots, snapshotsParams, async ({ params: { user, sessionId, ask } }) => {
        await this.#owned(user.id, sessionId)
        const { shares } = this.store
        const upTo = (await this.store.sessions.get(sessionId))?.lastSeq ?? 0
        const made = { id: `secret_${upTo}`, sessionId, upTo, createdAt: Date.now() }
        if (ask.do === 'make') await shares.addSnapshot({ ...ask.snapshot, ...made }, user.id)
        if (ask.do === 'remove') await shares.removeSnapshot(sessionId, ask.id)
        return { snapshots: await shares.snapshotsOf(sessionId) }
      })
      .onRequest(
        EXT.comment,
        commentParams,
        async ({ params: { user, sessionId, commentId, text, mentions } }) => {
          await this.#admit(user.id, sessionId, `comment ${text} ${mentions.join()}`)
          const event = { type: 'comment', commentId, text, mentions } as const
          const author = { id: user.id, name: user.name ?? '' }
          await this.#settle(sessionId, makeSandlotEvent(event, { author }, Date.now()))
          return { commentId }
        },
      )
      .onNotification(EXT.typing, typingParams, ({ params }) => {
        this.received.push(`typing ${params.user.id} ${params.sessionId}`)
      })
      .onRequest(EXT.mcpServers, mcpServersParams, ({ params: { user, ask } }) => {
        if (user.role === 'guest') throw refusal('forbidden', 'Guests have no MCP servers.')
        this.received.push(`mcp_servers ${user.id} ${ask.of} ${ask.do}`)
        return this.mcpServers(user, ask)
      })
      .onRequest(EXT.mcpSignIn, mcpSignInParams, ({ params: { user, answer } }) => {
        this.received.push(`mcp_sign_in ${user.id} ${answer}`)
        return answer.includes('code=') ? { server: 'calendar' } : { problem: 'It was <b>not</b> connected.' }
      })
      .onRequest(EXT.instructions, instructionsParams, ({ params: { user, of, text } }) => {
        const whose = of === 'team' ? '' : user.id
        if (text !== undefined) this.instructions.set(whose, text)
        const kept = { text: this.instructions.get(whose) ?? '' }
        return of === 'team' ? { ...kept, configured: 'Be kind.', operator: 'No games.' } : kept
      })
      .onRequest(EXT.secrets, secretsParams, ({ params: { user, ask } }) => {
        const own = this.secrets.get(user.id) ?? new Map<string, string>()
        this.secrets.set(user.id, own)
        if (ask.do === 'set') own.set(ask.name, ask.value)
        if (ask.do === 'remove' && !own.delete(ask.name))
          throw new RequestError(-32_600, 'You have no secret of that name.', { code: 'not_found' })
        return { secrets: [...own.keys()].toSorted().map((name) => ({ name, updatedAt: 1 })) }
      })
      .onRequest(EXT.files, filesParams, ({ params: { user, ask } }) => this.files.answer(user.id, ask))
      .onRequest(EXT.ports, portsParams, ({ params: { user, ask } }) => this.ports(user, ask))
      .onRequest(EXT.terminals, terminalsParams, ({ params: { user, ask } }) => this.terminals(user, ask))
      .onRequest(EXT.exec, execParams, ({ params }) => this.exec(params))
      .onRequest(EXT.exportPrompt, exportPromptParams, async ({ params, client }) => {
        const { user, sessionId, promptId } = params
        await this.#owned(user.id, sessionId)
        this.received.push(`export ${promptId}`)
        const document = JSON.stringify({ promptId, events: await this.store.log.read(sessionId) })
        for (const text of [document.slice(0, 10), document.slice(10), ...this.exportedAfter])
          await client.notify(EXT.exportPiece, { text })
        return {}
      })
      .onRequest(EXT.removePerson, removePersonParams, async ({ params: { userId, data, handOver } }) => {
        const to = handOver === undefined ? '' : ` to ${handOver}`
        this.received.push(`remove ${userId} ${data}${to}`)
        await this.beforeRemoval(userId)
        return {}
      })
      .onRequest(EXT.settings, settingsParams, ({ params: { user, ask } }) => this.#settings(user, ask))
      .onRequest(EXT.budgets, budgetsParams, () => ({ budgets: this.budgets }))
      .onRequest(EXT.putPerson, putPersonParams, ({ params: { userId, role, teams } }) => {
        this.received.push(`person ${userId} ${role} ${teams.length}`)
        return {}
      })
      .onRequest(EXT.teamSeeds, teamSeedsParams, ({ params: { adopted = [] } }) => {
        this.teamSeeds = this.teamSeeds.filter(({ id }) => !adopted.includes(id))
        return { teams: this.teamSeeds }
      })
      .onRequest(EXT.metrics, z.object({}), () => {
        if (this.metrics === undefined) throw new RequestError(-32_601, 'unknown method')
        return this.metrics
      })
      .onRequest(EXT.status, z.object({}), () => this.status)
  }

  async #prompt(
    sessionId: string,
    { text, images }: { text: string; images: Pick<MessageImage, 'mimeType' | 'data'>[] },
    meta: z.output<typeof promptMeta>,
    client: AgentContext,
  ) {
    const { user, requestId, unattended = false, onError } = meta
    const known =
      requestId === undefined ? undefined : await this.store.log.findSubmission(user.id, requestId)
    if (known !== undefined) {
      const log = await this.store.log.read(known.sessionId)
      const end = log.find((event) => event._meta.sandlot.event?.type === 'prompt_ended')
      if (end === undefined) throw refusal('busy', 'this script runs one prompt at a time')
      const { promptId } = known
      await client.notify(EXT.promptAccepted, { sessionId: known.sessionId, promptId, requestId })
      return {
        stopReason: 'end_turn' as const,
        _meta: { sandlot: { promptId: known.promptId, reason: 'completed', duplicate: true } },
      }
    }
    if (this.#running.has(sessionId)) throw refusal('busy', 'A prompt is running.')
    const stop = new AbortController()
    this.#running.set(sessionId, stop)
    const promptId = newId('p')
    this.#follow(sessionId, client)
    const at = Date.now()
    const author = { id: user.id, name: user.name ?? '' }
    const started: SandlotEvent = {
      type: 'prompt_started',
      requestId,
      model: this.status.model.name,
      ...(unattended ? { unattended } : {}),
      onError,
      follows: meta.follows,
    }
    const message: EventOf<'user_message_chunk'> = {
      sessionUpdate: 'user_message_chunk',
      messageId: newId('m'),
      content: { type: 'text', text },
      _meta: makeMeta({ promptId, author }, at),
    }
    const attached = images.map(({ mimeType, data }, index): SessionEvent => {
      const content = { type: 'image', mimeType, data } as const
      return { ...message, messageId: `${message.messageId}_${index + 1}`, content }
    })
    const stored = await this.store.log.append(
      sessionId,
      [makeSandlotEvent(started, { promptId, author }, at), message, ...attached],
      {
        runningPromptId: promptId,
        submission: requestId === undefined ? undefined : { userId: user.id, requestId, promptId },
      },
    )
    this.#send(sessionId, stored)
    // A prompt runs on where its client has left.
    await client.notify(EXT.promptAccepted, { sessionId, promptId, requestId }).catch(() => undefined)

    const meta_ = (fields: MetaFields = {}) => makeMeta({ promptId, ...fields }, Date.now())
    const turn: Turn = {
      sessionId,
      text,
      unattended,
      onError,
      cancelled: stop.signal,
      settle: (event) => this.#settle(sessionId, event(meta_)),
      live: (event) =>
        this.#send(sessionId, [
          event((fields) =>
            meta_({
              ...fields,
              live: true,
            }),
          ),
        ]),
      say: (said) =>
        this.#settle(sessionId, {
          sessionUpdate: 'agent_message_chunk',
          messageId: newId('m'),
          content: {
            type: 'text',
            text: said,
          },
          _meta: meta_({
            turn: 1,
            usage: {
              input: 10,
              output: 2,
            },
          }),
        }),
      happen: (event) => this.#settle(sessionId, makeSandlotEvent(event, { promptId }, Date.now())),
      approval: (toolCallId) =>
        new Promise((resolve) => this.#answers.set(`${sessionId} ${toolCallId}`, resolve)),
    }
    const reason = (await this.script(turn)) ?? (stop.signal.aborted ? 'cancelled' : 'completed')
    const stopReason = STOP_REASON_OF[reason]
    this.#running.delete(sessionId)
    const ended: SandlotEvent = { type: 'prompt_ended', stopReason, reason }
    const end = await this.store.log.append(sessionId, [makeSandlotEvent(ended, { promptId }, Date.now())], {
      runningPromptId: null,
    })
    this.#send(sessionId, end)
    const result = { stopReason, _meta: { sandlot: { promptId, reason } } }
    return this.answered(result) as typeof result
  }

  /** Notes what came, when everything before it is noted. Throws `not_found`. */
  async #admit(userId: string, sessionId: string, what: string): Promise<void> {
    await this.#admitted.run(sessionId, async () => {
      await this.#owned(userId, sessionId)
      this.received.push(what)
    })
  }

  /** It has no teams. Throws `not_found`. */
  async #owned(userId: string, sessionId: string): Promise<void> {
    await this.beforeOwned()
    const row = await this.store.sessions.get(sessionId)
    this.#refuseForeign(row?.userId ?? userId)
    if (row?.userId === userId) return
    const shares = await this.store.shares.of(sessionId)
    if (accessBy(shares, { id: userId }, Date.now()) === undefined)
      throw refusal('not_found', 'There is no such chat.')
  }

  #refuseForeign(userId: string): void {
    if (!this.has(userId)) throw refusal('not_owner', 'Another agent has this person.')
  }

  #follow(sessionId: string, client: AgentContext | undefined): void {
    if (client === undefined) return
    const followers = this.#followers.get(sessionId) ?? new Set()
    this.#followers.set(sessionId, followers.add(client))
  }

  async #settle(sessionId: string, event: SessionEvent): Promise<void> {
    this.#send(sessionId, await this.store.log.append(sessionId, [event], approvalEffects(event)))
  }

  #send(sessionId: string, events: readonly SessionEvent[]): void {
    for (const client of this.#followers.get(sessionId) ?? []) {
      for (const event of events) {
        client
          .notify(methods.client.session.update, { sessionId, update: wire(event) })
          .catch(() => undefined)
      }
    }
  }
}

/** Stored as by ai-agent. */
function approvalEffects(event: SessionEvent): Effects {
  const happened = sandlotEventOf(event)
  const { at } = metaOf(event)
  if (happened?.type === 'approval_asked') {
    const { toolCallId, expiresAt } = happened
    return { approvalAsked: { toolCallId, askedAt: at, expiresAt } }
  }
  if (happened?.type !== 'approval_answered') return {}
  const { toolCallId, optionId = null, by } = happened
  return { approvalAnswered: { toolCallId, answeredAt: at, optionId, by } }
}

/** The SDK's types know no `undefined` members; JSON neither. */
function wire(event: SessionEvent) {
  return JSON.parse(JSON.stringify(event)) as Parameters<AgentContext['notify']>[1] as never
}

/** An error as the agent answers it. */
export function refusal(code: SandlotError['code'], message: string): RequestError {
  return new RequestError(-32_600, message, { code })
}

async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof SandlotError) throw refusal(error.code, error.message)
    throw error
  }
}

export function seqs(events: readonly SessionEvent[]): number[] {
  return events.flatMap((event) => seqOf(event) ?? [])
}
