/** One client's connection: its user, the sessions it follows, and its open permission requests. */
import {
  type AgentContext,
  type AnyMessage,
  type ClientCapabilities,
  RequestError,
  methods,
} from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp/meta'
import { type AgentUser, agentUser } from '@sandlot/shared/account/agent-user'
import { createKeyedLock } from '@sandlot/shared/async/keyed-lock'
import { Recent } from '@sandlot/shared/async/recent'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { type SessionEvent, isOutcome, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import { z } from 'zod'
import type { Access } from '../session/access.ts'
import type { Session } from '../session/session.ts'
import { type ClientFeatures, ClientMessages, NO_FEATURES, clientCapabilities } from './client-messages.ts'
import { configOptionsOf } from './config-options.ts'
import { askClient } from './permission.ts'
import { parseParams } from './errors.ts'
import {
  type ForeignState,
  type Notice,
  FOREIGN_START,
  forForeignClient,
  withOwnMessage,
} from './foreign-client.ts'
import type { AcpServerParts } from './parts.ts'
import { SessionPump } from './session-pump.ts'
import { AVAILABLE_COMMANDS } from './slash-commands.ts'

/** The user of a foreign client, which runs on this machine and names none. */
const LOCAL_USER: AgentUser = { id: 'local', role: 'admin' }

const withUser = z.looseObject({ sandlot: z.looseObject({ user: agentUser }) })

/** Caches the last events: the same object for each reader, written as JSON once for all. */
const sent = new Recent<readonly SessionEvent[], object>(
  (one, other) => one.length === other.length && one.every((event, index) => event === other[index]),
)

/** Writes a notification without the SDK's queue. Undefined: the next one may follow at once. */
export type SendNow = (message: AnyMessage) => Promise<void> | undefined

interface Followed {
  pump: SessionPump
  foreign: ForeignState
  /** Open permission requests by call id. */
  asking: Map<string, AbortController>
  /** Sent to a foreign client with its first message. */
  notices: readonly Notice[]
  /** Number of the last event when it began to follow: up to there nothing is sent as a notice. */
  readonly before: number
}

type Parts = Pick<AcpServerParts, 'manager' | 'log' | 'modeCeilingOf' | 'userSeen'>

export class ClientConnection {
  readonly #client: AgentContext
  readonly #parts: Parts
  readonly #closed: AbortSignal
  readonly #close: () => void
  readonly #sendNow: SendNow | undefined
  readonly #followed = new Map<string, Followed>()
  /** Per session the last request that has not taken effect. */
  readonly #admitting = createKeyedLock()
  /** The agent's own messages, for a foreign client. */
  readonly messages: ClientMessages
  #capabilities: ClientCapabilities | undefined
  #wishes: ClientFeatures = NO_FEATURES

  /** `sendNow`: for our own service, if its stream has it. */
  constructor(
    client: AgentContext,
    parts: Parts,
    closed: AbortSignal,
    close: () => void,
    sendNow: SendNow | undefined,
  ) {
    this.#close = close
    this.#sendNow = sendNow
    this.#client = client
    this.#parts = parts
    this.#closed = closed
    this.messages = new ClientMessages(client, closed, parts.log)
    closed.addEventListener('abort', () => this.#leave(), { once: true })
  }

  /** True for our own service: it gets our stream unchanged, and names the user of each request. */
  get ours(): boolean {
    return this.#wishes.ours
  }

  get closed(): AbortSignal {
    return this.#closed
  }

  initialize(capabilities: ClientCapabilities | undefined): void {
    const had = this.#wishes.sessionChanges
    this.#capabilities = capabilities
    this.#wishes = clientCapabilities(capabilities)
    this.messages.configure(this.#wishes)
    if (this.#wishes.sessionChanges && !had) void this.#sendChanges()
  }

  /**
   * The user of a request. Throws `bad_request` when our own service names none. A foreign client
   * is always the local user.
   */
  user(meta: unknown): AgentUser {
    const user = this.ours ? parseParams(withUser, meta, '_meta').sandlot.user : LOCAL_USER
    this.#parts.userSeen?.(user)
    const modeCeiling = this.#parts.modeCeilingOf?.(user.id, user.modeCeiling) ?? user.modeCeiling
    return modeCeiling === undefined ? user : { ...user, modeCeiling }
  }

  /**
   * `_meta.sandlot` of a request of our own service, by its schema. Undefined for a foreign client.
   */
  meta<S extends z.ZodType>(schema: S, meta: unknown): z.infer<S> | undefined {
    if (!this.ours) return undefined
    return parseParams(z.looseObject({ sandlot: schema }), meta, '_meta').sandlot as z.infer<S>
  }

  /**
   * Runs `work` after all earlier work on the session. Requests are handled concurrently, but those
   * on one session take effect in the order of their messages: a Stop right behind a prompt must
   * find it. So `work` must end once its request has taken effect, before it waits for the model or
   * for a person. A handler calls this before any other `await`; handlers begin in the order of
   * their messages (`yieldBetweenMessages`).
   */
  runInOrder<T>(sessionId: string, work: () => Promise<T>): Promise<T> {
    return this.#admitting.run(sessionId, work)
  }

  /**
   * Sends all events of the session after number `after`, then live ones. A session that is
   * followed already is sent again from there, but without a gap behind what was sent before.
   */
  follow(session: Session, after: number, user: AgentUser, access: Access): SessionPump {
    const before = this.#followed.get(session.id)
    before?.pump.stop()
    for (const asking of before?.asking.values() ?? []) asking.abort()
    const followed: Followed = {
      foreign: FOREIGN_START,
      asking: new Map(),
      notices: before?.notices ?? [],
      before: session.seq,
      pump: new SessionPump({
        session,
        after: before === undefined ? after : Math.min(after, before.pump.sent),
        actor: this.ours ? user : undefined,
        send: (events) => this.#send(session, access === 'owner' ? events : events.map(withoutPersonal)),
        caughtUp: () => this.#askPending(session),
        unshared: () => void this.#unshared(session.id),
        moved: () => this.#moved(session),
        handedOver: () => void this.#openAgain(session.id, user),
      }),
    }
    this.#followed.set(session.id, followed)
    if (access !== 'owner') {
      const { shares } = this.#parts.manager
      if (access.expiresAt !== null) shares.expireAt(session.id, access.expiresAt)
      // It may have been revoked since it was looked up, before there was a reader to end.
      shares.recheckUser(user.id)
    }
    return followed.pump
  }

  /** The pump of a session; follows it from its end if it is not followed yet. */
  ensureFollowed(session: Session, user: AgentUser, access: Access): SessionPump {
    return this.#followed.get(session.id)?.pump ?? this.follow(session, session.seq, user, access)
  }

  /** Notifies our own service. Does nothing once the connection has closed. */
  filesChanged(paths: readonly string[]): void {
    void this.#notify(EXT.filesChanged, { paths })
  }

  unfollow(sessionId: string): void {
    const followed = this.#followed.get(sessionId)
    followed?.pump.stop()
    for (const asking of followed?.asking.values() ?? []) asking.abort()
    this.#followed.delete(sessionId)
  }

  /** The user may not see the session any more. */
  async #unshared(sessionId: string): Promise<void> {
    this.unfollow(sessionId)
    if (this.ours) await this.#notify(EXT.sessionClosed, { sessionId, why: 'unshared' })
  }

  /** Our own service connects again, to the agent that has the session now. */
  #moved(session: Session): void {
    this.unfollow(session.id)
    if (this.ours) this.#close()
  }

  /** If the new owner belongs to another agent, our own service connects again, to that one. */
  async #openAgain(sessionId: string, user: AgentUser): Promise<void> {
    const after = this.#followed.get(sessionId)?.pump.sent ?? 0
    this.unfollow(sessionId)
    if (!this.ours) return
    try {
      const { session, access } = await this.#parts.manager.open(user, sessionId, 'read')
      this.follow(session, after, user, access)
    } catch (error) {
      if (error instanceof SandlotError && error.code === 'not_found') return this.#unshared(sessionId)
      this.#close()
    }
  }

  /** Keeps the echo of this client's own message from a foreign client. */
  suppressEcho(sessionId: string, messageId: string): void {
    const followed = this.#followed.get(sessionId)
    if (followed !== undefined) followed.foreign = withOwnMessage(followed.foreign, messageId)
  }

  /**
   * Resolves when this client has every event up to this one, or does not follow the session any
   * more.
   */
  async sentThrough(sessionId: string, seq: number): Promise<void> {
    await this.#followed.get(sessionId)?.pump.sentThrough(seq)
  }

  /** Adds notices that a foreign client gets with its first message in this session. */
  addFirstNotifications(session: Session, notices: readonly Notice[]): void {
    const followed = this.#followed.get(session.id)
    if (followed !== undefined && !this.ours) followed.notices = [...followed.notices, ...notices]
  }

  /** Sends the slash commands of this session to a foreign client, after the current response. */
  offerCommands(session: Session): void {
    if (this.ours || !this.#followed.has(session.id)) return
    const update = {
      sessionUpdate: 'available_commands_update',
      availableCommands: AVAILABLE_COMMANDS,
    } as const
    // The client learns the session's id from the response, which is sent in this turn of the loop.
    setImmediate(() => void this.#notify(methods.client.session.update, { sessionId: session.id, update }))
  }

  /** The notes, once, before the answer to the first message. */
  async sendFirstNotifications(session: Session): Promise<void> {
    const followed = this.#followed.get(session.id)
    if (followed === undefined) return
    const { notices } = followed
    followed.notices = []
    await this.messages.sendNotifications(session.id, notices)
  }

  async accepted(sessionId: string, promptId: string, requestId: string | undefined): Promise<void> {
    if (!this.ours) return
    await this.#notify(EXT.promptAccepted, {
      sessionId,
      promptId,
      requestId,
    })
  }

  // ── Sending
  // ───────────────────────────────────────────────────────────────────────────────────────────

  #send(session: Session, events: readonly SessionEvent[]): Promise<void> | undefined {
    if (!this.ours) return this.#sendForeign(session, events)
    const sessionId = session.id
    const [update] = events
    const isOne = events.length === 1
    const params = sent.get(events, () => (isOne ? { sessionId, update } : { sessionId, updates: events }))
    return this.#notifyOurs(isOne ? methods.client.session.update : EXT.sessionUpdates, params)
  }

  /**
   * To our own service, which reads notifications before the SDK does. Responses follow on the wire
   * what was sent before them. Undefined: the next one may follow at once.
   */
  #notifyOurs(method: string, params: object): Promise<void> | undefined {
    if (!this.ours || this.#sendNow === undefined || this.#closed.aborted)
      return this.#client.notify(method, params)
    return this.#sendNow({ jsonrpc: '2.0', method, params })
  }

  async #sendForeign(session: Session, events: readonly SessionEvent[]): Promise<void> {
    for (const event of events) await this.#sendForeignEvent(session, event)
  }

  async #sendForeignEvent(session: Session, event: SessionEvent): Promise<void> {
    const sessionId = session.id
    const followed = this.#followed.get(sessionId)
    if (followed === undefined) return
    const isNews = (seqOf(event) ?? Infinity) > followed.before
    const notices = this.#wishes.notices === true && isNews
    const { state, updates } = forForeignClient(followed.foreign, event, { ...this.#wishes, notices })
    followed.foreign = state
    for (const update of updates)
      await this.#client.notify(methods.client.session.update, { sessionId, update })
    const happened = sandlotEventOf(event)?.type
    if (event.sessionUpdate === 'current_mode_update' || happened === 'model_chosen')
      await this.#sendOptions(session)
    if (happened === 'approval_asked') this.#askPending(session)
    this.#withdrawQuestion(followed, event)
  }

  /**
   * Sends a piece of an export that this client requested. Rejects when the connection is closed.
   */
  async sendPiece(text: string): Promise<void> {
    await this.#notifyOurs(EXT.exportPiece, { text })
  }

  /** A mode is also a config option, and clients that know options may not look at modes. */
  async #sendOptions(session: Session): Promise<void> {
    const configOptions = configOptionsOf(session, undefined)
    const update = { sessionUpdate: 'config_option_update', configOptions } as const
    await this.#client.notify(methods.client.session.update, { sessionId: session.id, update })
  }

  /** Sends every change in the session lists of all users. Ends with the connection. */
  async #sendChanges(): Promise<void> {
    for await (const change of this.#parts.manager.shares.changes(this.#closed))
      await this.#notify(EXT.sessionChanged, change)
  }

  async #notify(method: string, params: object): Promise<void> {
    try {
      await this.#notifyOurs(method, params)
    } catch (error) {
      // On a closed connection this is expected.
      if (!this.#closed.aborted)
        this.#parts.log.warn({ method, error: messageOf(error) }, 'a notification to a client was not sent')
    }
  }

  // ── Permission, for foreign clients
  // ───────────────────────────────────────────────────────────────────

  #askPending(session: Session): void {
    const followed = this.#followed.get(session.id)
    if (this.ours || followed === undefined) return
    for (const pending of session.pendingApprovals()) {
      const { toolCallId } = pending
      if (followed.asking.has(toolCallId)) continue
      const withdrawn = new AbortController()
      followed.asking.set(toolCallId, withdrawn)
      void askClient(this.#client, this.#capabilities, session, pending, withdrawn.signal)
        .catch((error: unknown) => {
          if (this.#closed.aborted || withdrawn.signal.aborted) return undefined
          this.#parts.log.warn(
            { toolCallId, error: messageOf(error) },
            'a client could not be asked for permission',
          )
          // The client will never answer: do not wait for it.
          const cannot = error instanceof RequestError || error instanceof SandlotError
          return cannot ? session.refuse(toolCallId, 'unattended') : undefined
        })
        .catch((error: unknown) =>
          this.#parts.log.warn({ toolCallId, error: messageOf(error) }, 'a refusal was not stored'),
        )
    }
  }

  /** Answered elsewhere, expired, cancelled: the client need not answer any more. */
  #withdrawQuestion(followed: Followed, event: SessionEvent): void {
    const happened = sandlotEventOf(event)
    const callId =
      happened?.type === 'approval_answered'
        ? happened.toolCallId
        : isOutcome(event)
          ? event.toolCallId
          : undefined
    if (callId === undefined) return
    followed.asking.get(callId)?.abort()
  }

  /**
   * The client has disconnected. Its prompts and open approvals stay: it may reconnect, or another
   * client answer.
   */
  #leave(): void {
    for (const sessionId of this.#followed.keys()) this.unfollow(sessionId)
  }
}

/** Instructions of the owner and their workspace are not shared. */
function withoutPersonal(event: SessionEvent): SessionEvent {
  const happened = sandlotEventOf(event)
  if (happened?.type !== 'instructions' && happened?.type !== 'ports_open') return event
  const hidden =
    happened.type === 'instructions' ? { type: happened.type, text: '' } : { ...happened, ports: [] }
  const sandlot = { ...event._meta.sandlot, event: hidden }
  return { ...event, _meta: { ...event._meta, sandlot } }
}
