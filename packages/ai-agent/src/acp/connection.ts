/** One client's connection: who it is, which sessions it follows, and the questions it is being asked. */
import { randomUUID } from 'node:crypto'
import { type AgentContext, type ClientCapabilities, RequestError, methods } from '@agentclientprotocol/sdk'
import { EXT, type AgentUser, agentUser } from '@sandlot/shared/acp-meta'
import { SandlotError, messageOf } from '@sandlot/shared/errors'
import { type SessionEvent, isOutcome, sandlotEventOf } from '@sandlot/shared/events'
import { z } from 'zod'
import type { Session } from '../session.ts'
import { configOptionsOf } from './config-options.ts'
import { askClient } from './elicitation.ts'
import { parseParams } from './errors.ts'
import {
  FOREIGN_START,
  type ForeignOptions,
  type ForeignState,
  forForeignClient,
  spoken,
  withOwnMessage,
} from './for-foreign-client.ts'
import type { AcpParts } from './serving.ts'
import { SessionPump } from './session-pump.ts'
import { AVAILABLE_COMMANDS } from './slash-commands.ts'
import { toWire } from './wire.ts'

/** The user of a client that does not say who asks: somebody at this machine. */
const LOCAL_USER: AgentUser = { id: 'local', role: 'admin' }

const ours = z.looseObject({ sandlot: z.looseObject({ version: z.literal(1) }) })
const withUser = z.looseObject({ sandlot: z.looseObject({ user: agentUser }) })

interface Followed {
  pump: SessionPump
  foreign: ForeignState
  /** Open permission requests by call id. */
  asking: Map<string, AbortController>
  /** What a foreign client is told with its first message. */
  notes: readonly string[]
}

type Parts = Pick<AcpParts, 'manager' | 'log' | 'modeCeilingOf' | 'saw'>

export class ClientConnection {
  readonly #client: AgentContext
  readonly #parts: Parts
  readonly #closed: AbortSignal
  readonly #followed = new Map<string, Followed>()
  /** Per session the last message that is on its way into it. */
  readonly #admitting = new Map<string, Promise<unknown>>()
  #capabilities: ClientCapabilities | undefined
  #ours = false
  #foreign: ForeignOptions = { terminal: undefined }

  constructor(client: AgentContext, parts: Parts, closed: AbortSignal) {
    this.#client = client
    this.#parts = parts
    this.#closed = closed
    closed.addEventListener('abort', () => this.#leave(), { once: true })
  }

  /** True for our own service: it gets our stream as it is, and says for which user it asks. */
  get ours(): boolean {
    return this.#ours
  }

  get closed(): AbortSignal {
    return this.#closed
  }

  initialize(capabilities: ClientCapabilities | undefined): void {
    const meta: unknown = capabilities?._meta ?? {}
    const wasOurs = this.#ours
    this.#capabilities = capabilities
    this.#ours = ours.safeParse(meta).success
    const terminal = z.looseObject({
      terminal_output: z.boolean().optional(),
      terminal_output_delta: z.boolean().optional(),
    })
    const wants = terminal.safeParse(meta).data
    this.#foreign = {
      terminal:
        wants?.terminal_output === true
          ? 'terminal_output'
          : wants?.terminal_output_delta === true
            ? 'terminal_output_delta'
            : undefined,
      compaction: capabilities?.session?.compaction != null,
    }
    if (this.#ours && !wasOurs) void this.#sendChanges()
  }

  /** Who asks. Throws `bad_request` when our own service does not say so. A foreign client is always the local user. */
  user(meta: unknown): AgentUser {
    const user = this.#ours ? parseParams(withUser, meta, '_meta').sandlot.user : LOCAL_USER
    this.#parts.saw?.(user)
    const modeCeiling = this.#parts.modeCeilingOf?.(user.id, user.modeCeiling) ?? user.modeCeiling
    return modeCeiling === undefined ? user : { ...user, modeCeiling }
  }

  /** `_meta.sandlot` of a request of our own service, by its schema. Undefined for a foreign client. */
  meta<S extends z.ZodType>(schema: S, meta: unknown): z.infer<S> | undefined {
    if (!this.#ours) return undefined
    return parseParams(z.looseObject({ sandlot: schema }), meta, '_meta').sandlot as z.infer<S>
  }

  /**
   * Requests are handled side by side, but what a client asks of one session takes effect in the order in which it asked:
   * a Stop right behind a prompt must find it. `work` begins when all admitted before it are done, so it must end where its
   * request has taken effect: what waits for the model or for a person comes behind it. A handler calls this before it waits
   * for anything else; handlers begin in the order of their messages (`one-a-turn.ts`).
   */
  admit<T>(sessionId: string, work: () => Promise<T>): Promise<T> {
    const before = this.#admitting.get(sessionId) ?? Promise.resolve()
    const admitted = before.then(work)
    const last = admitted.then(
      () => undefined,
      () => undefined,
    )
    this.#admitting.set(sessionId, last)
    void last.then(() => {
      if (this.#admitting.get(sessionId) === last) this.#admitting.delete(sessionId)
    })
    return admitted
  }

  /**
   * Send everything of the session after `after`, then live. A session that is followed already is sent again from
   * there, but never with a hole behind what was sent before.
   */
  follow(session: Session, after: number): SessionPump {
    const before = this.#followed.get(session.id)
    before?.pump.stop()
    for (const asking of before?.asking.values() ?? []) asking.abort()
    const followed: Followed = {
      foreign: FOREIGN_START,
      asking: new Map(),
      notes: before?.notes ?? [],
      pump: new SessionPump({
        session,
        after: before === undefined ? after : Math.min(after, before.pump.sent),
        send: (event) => this.#send(session, event),
        caughtUp: () => this.#askPending(session),
      }),
    }
    this.#followed.set(session.id, followed)
    return followed.pump
  }

  /** The pump of a session that is followed; from its end if it is not yet. */
  following(session: Session): SessionPump {
    return this.#followed.get(session.id)?.pump ?? this.follow(session, session.seq)
  }

  unfollow(sessionId: string): void {
    const followed = this.#followed.get(sessionId)
    followed?.pump.stop()
    for (const asking of followed?.asking.values() ?? []) asking.abort()
    this.#followed.delete(sessionId)
  }

  /** A message that this client is about to send: a foreign one must not get its echo. */
  owns(sessionId: string, messageId: string): void {
    const followed = this.#followed.get(sessionId)
    if (followed !== undefined) followed.foreign = withOwnMessage(followed.foreign, messageId)
  }

  /** Resolves when this client has every event up to this one, or does not follow the session any more. */
  async sentThrough(sessionId: string, seq: number): Promise<void> {
    await this.#followed.get(sessionId)?.pump.sentThrough(seq)
  }

  /** What a foreign client that gets this session is told with its first message. */
  noteFirst(session: Session, notes: readonly string[]): void {
    const followed = this.#followed.get(session.id)
    if (followed !== undefined && !this.#ours) followed.notes = [...followed.notes, ...notes]
  }

  /** What a foreign client may type in this session follows the answer that is being made. */
  offerCommands(session: Session): void {
    if (this.#ours || !this.#followed.has(session.id)) return
    const update = {
      sessionUpdate: 'available_commands_update',
      availableCommands: AVAILABLE_COMMANDS,
    } as const
    // The client knows the session's id only from the answer, which is on its way when this turn of the loop is over.
    setImmediate(() => void this.#notify(methods.client.session.update, { sessionId: session.id, update }))
  }

  /** The notes, once, before the answer to the first message. */
  async sayNotes(session: Session): Promise<void> {
    const followed = this.#followed.get(session.id)
    if (followed === undefined || followed.notes.length === 0) return
    const text = `(${followed.notes.join(' ')})\n\n`
    followed.notes = []
    await this.say(session.id, text)
  }

  /** A sentence to a foreign client, outside the log. */
  async say(sessionId: string, text: string): Promise<void> {
    await this.#client.notify(methods.client.session.update, { sessionId, update: spoken(text) })
  }

  /** The same in brackets, before what the agent says next, to whom it concerns; never in anybody's way. */
  tell(sessionId: string, text: string): void {
    const update = spoken(`(${text})\n\n`)
    if (!this.#closed.aborted) void this.#notify(methods.client.session.update, { sessionId, update })
  }

  /** As `tell`, with a link to open: where the client can, it asks its user whether to. What they say changes nothing here. */
  offer(sessionId: string, text: string, url: string): void {
    const inWords = `${text.replace(/\.$/, '')}: ${url}`
    if (this.#capabilities?.elicitation?.url == null) return this.tell(sessionId, inWords)
    const asked = { mode: 'url' as const, sessionId, elicitationId: randomUUID(), url, message: text }
    this.#client.request(methods.client.elicitation.create, asked).catch((error: unknown) => {
      if (this.#closed.aborted) return
      this.#parts.log.warn({ error: messageOf(error) }, 'a client could not ask its user to open a link')
      this.tell(sessionId, inWords)
    })
  }

  async accepted(sessionId: string, promptId: string, requestId: string | undefined): Promise<void> {
    if (!this.#ours) return
    await this.#notify(EXT.promptAccepted, {
      sessionId,
      promptId,
      ...(requestId === undefined ? {} : { requestId }),
    })
  }

  // ── Sending ───────────────────────────────────────────────────────────────────────────────────────────

  async #send(session: Session, event: SessionEvent): Promise<void> {
    const sessionId = session.id
    if (this.#ours) {
      return this.#client.notify(methods.client.session.update, { sessionId, update: toWire(event) })
    }
    const followed = this.#followed.get(sessionId)
    if (followed === undefined) return
    const { state, updates } = forForeignClient(followed.foreign, event, this.#foreign)
    followed.foreign = state
    for (const update of updates)
      await this.#client.notify(methods.client.session.update, { sessionId, update })
    const happened = sandlotEventOf(event)?.type
    if (event.sessionUpdate === 'current_mode_update' || happened === 'model_chosen')
      await this.#sendOptions(session)
    if (happened === 'approval_asked') this.#askPending(session)
    this.#withdrawQuestion(followed, event)
  }

  /** A mode is also a config option, and clients that know options may not look at modes. */
  async #sendOptions(session: Session): Promise<void> {
    const configOptions = configOptionsOf(session, undefined)
    const update = { sessionUpdate: 'config_option_update', configOptions } as const
    await this.#client.notify(methods.client.session.update, { sessionId: session.id, update })
  }

  /** Tell our own service of every change in a session list. Ends with the connection. */
  async #sendChanges(): Promise<void> {
    for await (const change of this.#parts.manager.changes(this.#closed))
      await this.#notify(EXT.sessionChanged, change)
  }

  async #notify(method: string, params: object): Promise<void> {
    try {
      await this.#client.notify(method, params)
    } catch (error) {
      // A connection that is gone has nobody to tell; anything else is worth knowing.
      if (!this.#closed.aborted)
        this.#parts.log.warn({ method, error: messageOf(error) }, 'a client could not be told')
    }
  }

  // ── Permission, for foreign clients ───────────────────────────────────────────────────────────────────

  #askPending(session: Session): void {
    const followed = this.#followed.get(session.id)
    if (this.#ours || followed === undefined) return
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
          // It cannot answer, now or ever: nobody waits for it.
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

  /** The client is gone. Its prompts and questions stay; it may come back, or another may answer. */
  #leave(): void {
    for (const sessionId of this.#followed.keys()) this.unfollow(sessionId)
  }
}
