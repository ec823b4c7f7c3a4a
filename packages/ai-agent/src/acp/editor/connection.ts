/**
 * The connection of an editor, or of another client that speaks ACP: its events in the protocol's
 * own terms, permission requests, notices, slash commands, and the MCP servers that it brings. It
 * runs on this machine, and is always the local user.
 */
import {
  type ClientCapabilities,
  type McpServer,
  type PromptResponse,
  RequestError,
  methods,
} from '@agentclientprotocol/sdk'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import type { AgentRequest } from '@sandlot/shared/agent-requests'
import { foreignPromptMeta } from '@sandlot/shared/acp/meta'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { type SessionEvent, isOutcome, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import { WORKSPACE } from '../../loop/system-prompt.ts'
import type { Access } from '../../session/access.ts'
import type { Session } from '../../session/session.ts'
import { configOptionsOf } from '../config-options.ts'
import { type AskedPrompt, type ConnectionParts, type EndedPrompt, ClientConnection } from '../connection.ts'
import { parseParams } from '../errors.ts'
import type { SessionPump } from '../session-pump.ts'
import { type ClientFeatures, ClientMessages, NO_FEATURES, clientFeatures } from './client-messages.ts'
import {
  type ForeignState,
  type Notice,
  FOREIGN_START,
  forForeignClient,
  withOwnMessage,
} from './foreign-client.ts'
import { askClient } from './permission.ts'
import { AVAILABLE_COMMANDS, beginSlashCommand } from './slash-commands.ts'

const LOCAL_USER: AgentUser = { id: 'local', role: 'admin' }

interface Followed {
  state: ForeignState
  /** Open permission requests by call id. */
  asking: Map<string, AbortController>
  /** Sent with its first message. */
  notices: readonly Notice[]
  /** Number of the last event when it began to follow: up to there nothing is sent as a notice. */
  readonly before: number
}

export class EditorConnection extends ClientConnection {
  readonly #messages: ClientMessages
  readonly #sessions = new Map<string, Followed>()
  #capabilities: ClientCapabilities | undefined
  #features: ClientFeatures = NO_FEATURES

  constructor(parts: ConnectionParts) {
    super(parts)
    this.#messages = new ClientMessages(parts.client, parts.closed, parts.log)
  }

  initialize(capabilities: ClientCapabilities | undefined): void {
    this.#capabilities = capabilities
    this.#features = clientFeatures(capabilities)
    this.#messages.configure(this.#features)
  }

  /** With the local user, whomever the request names. */
  extensionParams({ serviceOnly }: AgentRequest, params: unknown): unknown {
    if (serviceOnly === true)
      throw new SandlotError('not_implemented', 'Only Sandlot’s own service can send this request.')
    const namesUser = typeof params === 'object' && params !== null && 'user' in params
    return namesUser ? { ...params, user: this.user({}) } : params
  }

  claim(): undefined {}

  meta(): undefined {}

  typing(): Promise<void> {
    return Promise.resolve()
  }

  // ── Sessions and prompts ──────────────────────────────────────────────────────────────────────

  override follow(session: Session, after: number, user: AgentUser, access: Access): SessionPump {
    const known = this.#sessions.get(session.id)
    this.#withdrawAll(known)
    this.#sessions.set(session.id, {
      state: FOREIGN_START,
      asking: new Map(),
      notices: known?.notices ?? [],
      before: session.seq,
    })
    return super.follow(session, after, user, access)
  }

  override unfollow(sessionId: string): void {
    this.#withdrawAll(this.#sessions.get(sessionId))
    this.#sessions.delete(sessionId)
    super.unfollow(sessionId)
  }

  eventsBefore(): number {
    return 0
  }

  loadedMeta(): object {
    return {}
  }

  /** `servers` absent (a resume that says nothing): those that the session had. */
  begin(session: Session, servers: readonly McpServer[] | null | undefined): void {
    const notices = [...firstNotes(session), ...this.#setServers(session, servers)]
    const followed = this.#sessions.get(session.id)
    if (followed !== undefined) followed.notices = [...followed.notices, ...notices]
  }

  offerCommands({ id: sessionId }: Session): void {
    if (!this.#sessions.has(sessionId)) return
    const update = {
      sessionUpdate: 'available_commands_update',
      availableCommands: AVAILABLE_COMMANDS,
    } as const
    // The client learns the session's id from the response, which is sent in this turn of the loop.
    setImmediate(() => void this.notify(methods.client.session.update, { sessionId, update }))
  }

  promptMeta(given: unknown): AskedPrompt {
    return { onError: parseParams(foreignPromptMeta, given ?? {}, '_meta').sandlot?.onError }
  }

  /** Sends the notices, once, and begins the slash command that the message is. */
  async beforePrompt(session: Session, text: string): Promise<(() => Promise<void>) | undefined> {
    const followed = this.#sessions.get(session.id)
    const notices = followed?.notices ?? []
    if (followed !== undefined) followed.notices = []
    await this.#messages.sendNotifications(session.id, notices)
    const command = await beginSlashCommand(session, text, this.parts)
    return command && (async () => this.#messages.sendText(session.id, await command.result))
  }

  suppressEcho(sessionId: string, messageId: string): void {
    const followed = this.#sessions.get(sessionId)
    if (followed !== undefined) followed.state = withOwnMessage(followed.state, messageId)
  }

  accepted(): Promise<void> {
    return Promise.resolve()
  }

  /** Clients that use `onError` get the reason too; others get what the protocol has. */
  promptResponse({ stopReason, reason }: EndedPrompt, { onError }: AskedPrompt): PromptResponse {
    return onError === undefined ? { stopReason } : { stopReason, _meta: { sandlot: { reason } } }
  }

  // ── Sending ───────────────────────────────────────────────────────────────────────────────────

  protected userOf(): AgentUser {
    return LOCAL_USER
  }

  protected readerOf(): undefined {}

  protected async send(session: Session, events: readonly SessionEvent[]): Promise<void> {
    for (const event of events) await this.#sendEvent(session, event)
  }

  async #sendEvent(session: Session, event: SessionEvent): Promise<void> {
    const sessionId = session.id
    const followed = this.#sessions.get(sessionId)
    if (followed === undefined) return
    const isNews = (seqOf(event) ?? Infinity) > followed.before
    const notices = this.#features.notices === true && isNews
    const { state, updates } = forForeignClient(followed.state, event, { ...this.#features, notices })
    followed.state = state
    for (const update of updates) await this.post(methods.client.session.update, { sessionId, update })
    const happened = sandlotEventOf(event)?.type
    if (event.sessionUpdate === 'current_mode_update' || happened === 'model_chosen')
      await this.#sendOptions(session)
    if (happened === 'approval_asked') this.caughtUp(session)
    withdrawQuestion(followed, event)
  }

  /** A mode is also a config option, and clients that know options may not look at modes. */
  async #sendOptions(session: Session): Promise<void> {
    const configOptions = configOptionsOf(session, undefined)
    const update = { sessionUpdate: 'config_option_update', configOptions } as const
    await this.post(methods.client.session.update, { sessionId: session.id, update })
  }

  /** Asks for permission, for each pending approval once. */
  protected caughtUp(session: Session): void {
    const followed = this.#sessions.get(session.id)
    if (followed === undefined) return
    const { client, log } = this.parts
    for (const pending of session.pendingApprovals()) {
      const { toolCallId } = pending
      if (followed.asking.has(toolCallId)) continue
      const withdrawn = new AbortController()
      followed.asking.set(toolCallId, withdrawn)
      void askClient(client, this.#capabilities, session, pending, withdrawn.signal)
        .catch((error: unknown) => {
          if (this.closed.aborted || withdrawn.signal.aborted) return undefined
          log.warn({ toolCallId, error: messageOf(error) }, 'a client could not be asked for permission')
          // The client will never answer: do not wait for it.
          const cannot = error instanceof RequestError || error instanceof SandlotError
          return cannot ? session.refuse(toolCallId, 'unattended') : undefined
        })
        .catch((error: unknown) =>
          log.warn({ toolCallId, error: messageOf(error) }, 'a refusal was not stored'),
        )
    }
  }

  #withdrawAll(followed: Followed | undefined): void {
    for (const asking of followed?.asking.values() ?? []) asking.abort()
  }

  #setServers(session: Session, servers: readonly McpServer[] | null | undefined): Notice[] {
    if (servers == null) return []
    const owner: Parameters<ConnectionParts['clientServers']['setServers']>[2] = {
      closed: this.closed,
      sendNotification: (notice) => this.#messages.sendNotification(session.id, notice),
      offerLink: (text, link) => this.#messages.offerLink(session.id, text, link),
    }
    return this.parts.clientServers.setServers(session, servers, owner)
  }
}

/** Answered elsewhere, expired, cancelled: the client need not answer any more. */
function withdrawQuestion(followed: Followed, event: SessionEvent): void {
  const happened = sandlotEventOf(event)
  const callId =
    happened?.type === 'approval_answered'
      ? happened.toolCallId
      : isOutcome(event)
        ? event.toolCallId
        : undefined
  if (callId !== undefined) followed.asking.get(callId)?.abort()
}

function firstNotes({ cwd, seq }: Session): Notice[] {
  if (cwd === WORKSPACE || cwd.startsWith(`${WORKSPACE}/`) || seq > 0) return []
  const title = `I work in a sandbox of my own, in ${WORKSPACE}; it does not see your folder ${cwd}`
  return [{ severity: 'info', title }]
}
