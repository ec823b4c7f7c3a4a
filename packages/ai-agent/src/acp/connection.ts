/**
 * One client's connection: its user, the order of its requests, and the sessions it follows. Our
 * own service and editors each have their own class of it.
 */
import type { AgentContext, ClientCapabilities, McpServer, PromptResponse } from '@agentclientprotocol/sdk'
import { EXT, type promptMeta } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import type { AgentRequest } from '@sandlot/shared/agent-requests'
import { createKeyedLock } from '@sandlot/shared/async/keyed-lock'
import { messageOf } from '@sandlot/shared/base/errors'
import { type SessionEvent, sandlotEventOf } from '@sandlot/shared/chat/events'
import type { z } from 'zod'
import type { Access } from '../session/access.ts'
import type { Accepted } from '../session/intake.ts'
import type { Session } from '../session/session.ts'
import type { ProtocolParts } from './parts.ts'
import { SessionPump } from './session-pump.ts'

export type ConnectionParts = Pick<
  ProtocolParts,
  'manager' | 'log' | 'modeCeilingOf' | 'userSeen' | 'ownership' | 'clientServers'
> & {
  client: AgentContext
  /** Aborted when the client has disconnected. */
  closed: AbortSignal
}

/** The terms of a prompt by its `_meta`, as far as this client states them. */
export type AskedPrompt = Partial<Omit<z.infer<typeof promptMeta>, 'user'>>

export type EndedPrompt = Awaited<Accepted['done']> & {
  /** Its request id was submitted before. */
  duplicate: boolean
}

export abstract class ClientConnection {
  protected readonly parts: ConnectionParts
  readonly #pumps = new Map<string, SessionPump>()
  /** Per session the last request that has not taken effect. */
  readonly #admitting = createKeyedLock()

  constructor(parts: ConnectionParts) {
    this.parts = parts
    // Its prompts and open approvals stay: it may reconnect, or another client answer.
    const leave = (): void => {
      for (const sessionId of this.#pumps.keys()) this.unfollow(sessionId)
    }
    parts.closed.addEventListener('abort', leave, { once: true })
  }

  /** Takes what the client declares about itself. */
  abstract initialize(capabilities: ClientCapabilities | undefined): void

  /**
   * The params of an extension request, not checked yet. Throws `not_implemented` where such a
   * client may not send it.
   */
  abstract extensionParams(request: AgentRequest, params: unknown): unknown

  /** Undefined where the person of the request is this agent's. Throws `not_owner`. */
  abstract claim(request: AgentRequest, params: unknown): Promise<void> | undefined

  /** `_meta.sandlot` of a request, by its schema. Undefined for an editor. Throws `bad_request`. */
  abstract meta<S extends z.ZodType>(schema: S, meta: unknown): z.infer<S> | undefined

  /** A user types. Never rejects. */
  abstract typing(params: unknown): Promise<void>

  /** The number of the last event that the client has, by the `_meta` of `session/load`. */
  abstract eventsBefore(meta: unknown): number

  /** Added to the response to `session/load`. `seq`: of the last event sent. */
  abstract loadedMeta(seq: number): object

  /**
   * The client has opened the session, with these MCP servers. Throws `forbidden` where it may name
   * none.
   */
  abstract begin(session: Session, servers: readonly McpServer[] | null | undefined): void

  /** Sends the slash commands of the session, after the current response. */
  abstract offerCommands(session: Session): void

  /** Throws `bad_request`. */
  abstract promptMeta(meta: unknown): AskedPrompt

  /**
   * Called before a message is stored. Resolves with a function where the message is a command that
   * has begun and is no prompt; it shows the result.
   */
  abstract beforePrompt(
    session: Session,
    text: string,
  ): Promise<(() => Promise<void>) | undefined> | undefined

  /** Keeps the echo of the client's own message from it, where it has shown that itself. */
  abstract suppressEcho(sessionId: string, messageId: string): void

  /** The prompt is stored. */
  abstract accepted(sessionId: string, promptId: string, requestId: string | undefined): Promise<void>

  abstract promptResponse(end: EndedPrompt, asked: AskedPrompt): PromptResponse

  /** Undefined: more may follow at once. Rejects when the connection is closed. */
  protected abstract send(session: Session, events: readonly SessionEvent[]): Promise<void> | undefined

  protected abstract userOf(meta: unknown): AgentUser

  /** The reader, for others who see the session; undefined: not shown to them. */
  protected abstract readerOf(user: AgentUser): AgentUser | undefined

  /** All missed events of the session were sent. */
  protected abstract caughtUp(session: Session): void

  get closed(): AbortSignal {
    return this.parts.closed
  }

  /** The user of a request. Throws `bad_request` when our own service names none. */
  user(meta: unknown): AgentUser {
    const user = this.userOf(meta)
    this.parts.userSeen(user)
    const modeCeiling = this.parts.modeCeilingOf(user.id, user.modeCeiling)
    return modeCeiling === undefined ? user : { ...user, modeCeiling }
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
    const before = this.#pumps.get(session.id)
    before?.stop()
    const pump = new SessionPump({
      session,
      after: before === undefined ? after : Math.min(after, before.sent),
      actor: this.readerOf(user),
      send: (events) => this.send(session, access === 'owner' ? events : events.map(withoutPersonal)),
      caughtUp: () => this.caughtUp(session),
      unshared: () => void this.unshared(session.id),
      moved: () => this.moved(session.id),
      handedOver: () => void this.handedOver(session.id, user, this.#pumps.get(session.id)?.sent ?? 0),
    })
    this.#pumps.set(session.id, pump)
    if (access !== 'owner') {
      const { shares } = this.parts.manager
      if (access.expiresAt !== null) shares.expireAt(session.id, access.expiresAt)
      // It may have been revoked since it was looked up, before there was a reader to end.
      shares.recheckUser(user.id)
    }
    return pump
  }

  /** The pump of a session; follows it from its end if it is not followed yet. */
  ensureFollowed(session: Session, user: AgentUser, access: Access): SessionPump {
    return this.#pumps.get(session.id) ?? this.follow(session, session.seq, user, access)
  }

  unfollow(sessionId: string): void {
    this.#pumps.get(sessionId)?.stop()
    this.#pumps.delete(sessionId)
  }

  /**
   * Resolves when this client has every event up to this one, or does not follow the session any
   * more.
   */
  async sentThrough(sessionId: string, seq: number): Promise<void> {
    await this.#pumps.get(sessionId)?.sentThrough(seq)
  }

  /** Does nothing once the connection has closed. */
  filesChanged(paths: readonly string[]): void {
    void this.notify(EXT.filesChanged, { paths })
  }

  /**
   * Sends a piece of an export that this client requested. Rejects when the connection is closed.
   */
  async sendPiece(text: string): Promise<void> {
    await this.post(EXT.exportPiece, { text })
  }

  /** The user may not see the session any more. */
  protected async unshared(sessionId: string): Promise<void> {
    this.unfollow(sessionId)
  }

  /** Another agent has the session. */
  protected moved(sessionId: string): void {
    this.unfollow(sessionId)
  }

  /** Another person owns the session. `after`: number of the last event sent. */
  protected async handedOver(sessionId: string, _user: AgentUser, _after: number): Promise<void> {
    this.unfollow(sessionId)
  }

  /** Undefined: the next one may follow at once. Rejects when the connection is closed. */
  protected post(method: string, params: object): Promise<void> | undefined {
    return this.parts.client.notify(method, params)
  }

  /** Never rejects. */
  protected async notify(method: string, params: object): Promise<void> {
    try {
      await this.post(method, params)
    } catch (error) {
      // On a closed connection this is expected.
      if (!this.closed.aborted)
        this.parts.log.warn({ method, error: messageOf(error) }, 'a notification to a client was not sent')
    }
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
