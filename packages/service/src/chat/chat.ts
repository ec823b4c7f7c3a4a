/**
 * One reader's chat: frames in, frames out, through an ACP connection of its own (to each agent
 * that has a chat which is read here). Behind a browser
 * socket, and behind one `POST /api/chat`. Opened when first needed, to the only agent before. When
 * it is lost, every open session is loaded again from the last number sent. Independent of
 * WebSockets and HTTP.
 */
import { methods } from '@agentclientprotocol/sdk'
import {
  EXT,
  filesChanged,
  promptAccepted,
  promptResultMeta,
  sessionClosed,
  sessionUpdates,
  unqueueResult,
} from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { Recent } from '@sandlot/shared/async/recent'
import { SandlotError, toErrorBody } from '@sandlot/shared/base/errors'
import {
  type SessionEvent,
  isLive,
  metaOf,
  plainLiveText,
  sandlotEventOf,
  seqOf,
  sessionEvent,
} from '@sandlot/shared/chat/events'
import { readReadable } from '@sandlot/shared/base/readable'
import { type StopReason, stopReason } from '@sandlot/shared/chat/reasons'
import type { ClientFrame, ServerFrame } from '@sandlot/shared/chat/frames'
import { z } from 'zod'
import type { AgentConnection } from '../agent/agent-client.ts'
import type { Agents } from '../agent/agents.ts'
import { ReaderConnection } from '../agent/reader-connection.ts'
import { answerApproval } from './approvals.ts'
import { Cursor } from './cursor.ts'
import { withoutImageBytes } from './event-images.ts'
import { InOrder, NewestOnly } from './in-order.ts'
import type { Logger } from '../log.ts'
import { type Connection, OpenSessions, isUnavailable } from './open-sessions.ts'
import { type Access, refuseWatchers } from './sessions.ts'
import {
  type PromptContent,
  type PromptRequest,
  contentOf,
  sessionFor,
  sessionIdOf,
  setMode,
  setModel,
} from './submission.ts'
import type { Uploads } from './uploads.ts'

export interface ChatOptions {
  user: AgentUser
  agent: Agents
  log: Logger
  /** Must not throw or wait. */
  send: (frame: ServerFrame) => void
  /**
   * The user's access to this session; undefined: it does not exist for them. Checked before
   * notifications, which the agent does not answer.
   */
  accessTo: (sessionId: string) => Promise<Access | undefined>
  uploads: Uploads
  /** True if an answer may make a rule for later sessions: not with an API key. */
  mayMakeRules: boolean
  /** Awaited before each prompt is passed on; what it throws refuses the prompt. */
  beforePrompt?: () => Promise<void>
}

/** The end of a prompt, as the agent's answer repeats it. */
export interface ChatEnd {
  promptId: string
  stopReason: StopReason
}

/** Frames of one session that may wait here; a person does not reach this. */
const MAX_WAITING_FRAMES = 64

/** Prompts of one reader that have not ended; each holds its message. */
const MAX_PROMPTS = 128

/** Cached for the last updates: other readers of the session get the same ones. */
const readUpdates = new Recent<unknown, ReturnType<typeof readReadable<SessionEvent>>>()
const promptResult = z.object({ stopReason, _meta: z.object({ sandlot: promptResultMeta }) })

export class Chat {
  readonly #options: ChatOptions
  /** By whose agent it is: one, where there is one agent. */
  readonly #readers = new Map<string, ReaderConnection>()
  readonly #sessions: OpenSessions
  readonly #prompts: PendingPrompts
  /** By session: frames of a reader about one session are passed on in order. */
  readonly #order = new InOrder(MAX_WAITING_FRAMES)
  /** Frames that say all of what an earlier one did. */
  readonly #newest = new NewestOnly()
  #watched: readonly string[] = []
  #watchedBy: ReaderConnection | undefined
  #closed = false

  constructor(options: ChatOptions) {
    const { user, send } = options
    this.#options = options
    this.#sessions = new OpenSessions({ user, send })
    this.#prompts = new PendingPrompts(send)
  }

  /**
   * The reader of this session; undefined: of the user's own data. After a change of owner the
   * session is read over another connection.
   */
  async #readerOf(sessionId?: string): Promise<ReaderConnection> {
    const { agent, user } = this.#options
    const reader = this.#readerAt(await agent.holderOf(user.id, sessionId))
    const before = sessionId === undefined ? undefined : this.#sessions.readerOf(sessionId)
    if (sessionId !== undefined && before !== undefined && before !== reader)
      await this.#sessions.moveTo(reader, sessionId, (work) => this.#with(sessionId, work))
    return reader
  }

  async #connect(sessionId: string | undefined): Promise<Connection> {
    const reader = await this.#readerOf(sessionId)
    return { reader, connection: await reader.get() }
  }

  /**
   * `work` with the connection of this session's reader, begun in this turn where `begun` is given.
   * As of `Agents.again`.
   */
  #with<T>(
    sessionId: string | undefined,
    work: (by: Connection) => Promise<T>,
    { mayRepeat = () => true, begun }: { mayRepeat?: () => boolean; begun?: Connection } = {},
  ): Promise<T> {
    let first = begun
    const connect = (): Connection | Promise<Connection> => {
      const given = first ?? this.#connect(sessionId)
      first = undefined
      return given
    }
    return this.#options.agent.again(connect, (by) => by.reader.use(by.connection, () => work(by)), mayRepeat)
  }

  #readerAt(holder: string): ReaderConnection {
    const { agent, log } = this.#options
    const known = this.#readers.get(holder)
    if (known !== undefined) return known
    const reader: ReaderConnection = new ReaderConnection({
      agent,
      holder,
      log,
      onNotification: (method, params) => this.#onNotification(method, params),
      wanted: () => this.#sessions.anyBy(reader) || this.#watchedBy === reader,
      onBack: async (connection) => {
        await this.#leaveMoved(reader)
        await this.#sessions.loadAgain(reader, connection, (error, sessionId) =>
          this.#refuse(error, { sessionId }),
        )
        if (this.#watchedBy === reader) await this.#sendWatched(connection)
      },
    })
    this.#readers.set(holder, reader)
    if (this.#closed) reader.close()
    return reader
  }

  /** Sessions that have another owner by now go to the connection of that one. */
  async #leaveMoved(reader: ReaderConnection): Promise<void> {
    for (const sessionId of this.#sessions.by(reader)) {
      try {
        await this.#readerOf(sessionId)
      } catch (error) {
        // One that could not be asked yet is loaded after that connection is back.
        if (isUnavailable(error)) continue
        this.#sessions.forget(sessionId)
        this.#refuse(error, { sessionId })
      }
    }
  }

  /**
   * Never rejects: failures are sent as `ai_chat_error`. Resolves when the frame is handled; for
   * `ai_chat`, when it is passed on, and for what a newer one replaces, at once.
   */
  async handle(frame: Exclude<ClientFrame, { type: 'ai_chat_visible' }>): Promise<void> {
    const refuse = (error: unknown): void =>
      this.#refuse(error, {
        ...('requestId' in frame ? { requestId: frame.requestId } : {}),
        ...('sessionId' in frame ? { sessionId: frame.sessionId } : {}),
      })
    try {
      if (frame.type === 'ai_chat') void (await this.#passOn(frame)).end.catch(refuse)
      else await this.#dispatch(frame)
    } catch (error) {
      refuse(error)
    }
  }

  /**
   * Opens the connection before the first frame needs it. Of several agents the frame decides which
   * one. Never rejects.
   */
  async connect(): Promise<void> {
    const { agent } = this.#options
    if (agent.connected && agent.list() === undefined) await this.#connect(undefined).catch(() => undefined)
  }

  /** Closes the connection; prompts continue in the agent. */
  close(): void {
    this.#closed = true
    for (const reader of this.#readers.values()) reader.close()
  }

  /** Paths that the page shows of the workspace; sent again after a reconnect. */
  async #watch(paths: readonly string[]): Promise<void> {
    const reader = await this.#readerOf()
    this.#watched = paths
    this.#watchedBy = paths.length > 0 ? reader : undefined
    await this.#with(undefined, ({ connection }) => this.#sendWatched(connection))
  }

  async #sendWatched(connection: AgentConnection): Promise<void> {
    await connection.request(EXT.watch, { user: this.#options.user, paths: this.#watched })
  }

  #refuse(error: unknown, about: { requestId?: string; sessionId?: string }): void {
    if (this.#closed) return
    if (!(error instanceof SandlotError)) this.#options.log.error({ err: error, ...about }, 'a frame failed')
    const { code, message } = toErrorBody(error, about.requestId)
    this.#options.send({ type: 'ai_chat_error', ...about, code, message })
  }

  async #dispatch(frame: Exclude<ClientFrame, { type: 'ai_chat_visible' | 'ai_chat' }>): Promise<void> {
    const { user } = this.#options
    switch (frame.type) {
      case 'ai_chat_resume':
        return this.#newest.run(`resume ${frame.sessionId}`, () => this.resume(frame.sessionId, frame.after))
      case 'ai_chat_cancel':
        return frame.toolCallId === undefined
          ? this.#order.run(frame.sessionId, () => this.cancel(frame.sessionId))
          : this.#cancelCall(frame.sessionId, frame.toolCallId)
      case 'ai_chat_unqueue':
        return this.#order.run(frame.sessionId, () => this.#unqueue(frame.sessionId, frame.messageId))
      case 'ai_chat_approve':
        return this.#approve(frame)
      case 'ai_chat_mode':
        return this.#order.run(frame.sessionId, () =>
          this.#with(frame.sessionId, ({ connection }) =>
            setMode(connection, user, frame.sessionId, frame.modeId),
          ),
        )
      case 'ai_chat_watch':
        return this.#newest.run('watch', () => this.#watch(frame.paths))
      case 'ai_chat_typing':
        return this.#newest.run(`typing ${frame.sessionId}`, () => this.#typing(frame.sessionId))
      case 'ai_chat_model':
        return this.#order.run(frame.sessionId, () =>
          this.#with(frame.sessionId, ({ connection }) => setModel(connection, user, frame.sessionId, frame)),
        )
    }
  }

  /**
   * Resolves at the prompt's end. Throws `SandlotError` when it was not accepted; resolves to
   * undefined when the connection is lost after that: the events follow after the reconnect.
   */
  async prompt(request: PromptRequest): Promise<ChatEnd | undefined> {
    const { end } = await this.#passOn(request)
    return end
  }

  /** Resolves when the prompt is sent. Throws `SandlotError`. */
  #passOn(request: PromptRequest): Promise<{ end: Promise<ChatEnd | undefined> }> {
    const { user, uploads, beforePrompt } = this.#options
    return this.#order.run(request.sessionId ?? sessionIdOf(user.id, request.requestId), async () => {
      if (this.#prompts.size >= MAX_PROMPTS)
        throw new SandlotError('rate_limited', 'Too many messages wait here. Wait for their answers.')
      await beforePrompt?.()
      const content = await contentOf(uploads, user.id, request)
      const { by, sessionId, was } = await this.#with(request.sessionId, async (given) => ({
        by: given,
        ...(await sessionFor(given.connection, user, request)),
      }))
      if (was === 'made') this.#sessions.open(by.reader, sessionId, new Cursor(0))
      // A client that repeats the submission of its new session has seen nothing of it.
      if (was === 'made before' && !this.#sessions.has(sessionId)) await this.resume(sessionId, 0)
      // Sent: the agent keeps the order of requests, so the next one need not wait for the end.
      return { end: this.#submit(by, sessionId, content, request) }
    })
  }

  async #submit(
    begun: Connection,
    sessionId: string,
    content: PromptContent,
    request: PromptRequest,
  ): Promise<ChatEnd | undefined> {
    const { requestId, whenBusy, unattended, onError, follows } = request
    const prompt = this.#prompts.add(requestId)
    const known = this.#sessions.has(sessionId)
    if (!known) this.#sessions.open(begun.reader, sessionId, new Cursor())
    const sandlot = {
      user: this.#options.user,
      requestId,
      whenBusy,
      ...(unattended === true ? { unattended } : {}),
      onError,
      follows,
    }
    try {
      const answer = await this.#with(
        sessionId,
        ({ connection }) =>
          connection.request(methods.agent.session.prompt, {
            sessionId,
            prompt: content,
            _meta: { sandlot },
          }),
        // Once it is accepted, its events come after the reconnect.
        { begun, mayRepeat: () => prompt.promptId === undefined },
      )
      const { stopReason, _meta } = promptResult.parse(answer)
      const { promptId, duplicate } = _meta.sandlot
      this.#prompts.accepted(requestId, promptId, sessionId)
      // The end of a repeated submission may be long past, or yet to come: a resume brings it.
      if (duplicate !== true) this.#prompts.answered(sessionId, promptId, stopReason)
      return { promptId, stopReason }
    } catch (error) {
      const lostOnTheWay = error instanceof SandlotError && error.code === 'agent_unavailable'
      if (lostOnTheWay && prompt.promptId !== undefined) return undefined
      const refused = error instanceof SandlotError && error.code === 'not_found'
      if (refused && !known) this.#sessions.forget(sessionId)
      throw error
    } finally {
      this.#prompts.remove(requestId, prompt)
    }
  }

  /** Everything settled after `after`, what is in flight, then live. Resolves when caught up. */
  async resume(sessionId: string, after: number): Promise<void> {
    const reader = await this.#readerOf(sessionId)
    await this.#sessions.resume(reader, sessionId, after, (work) => this.#with(sessionId, work))
  }

  /** Stops the running prompt. */
  async cancel(sessionId: string): Promise<void> {
    const { user } = this.#options
    const connection = await (await this.#readerOf(sessionId)).get()
    await this.#refuseUnlessTakingPart(sessionId)
    await connection.notify(methods.agent.session.cancel, { sessionId, _meta: { sandlot: { user } } })
  }

  /** A notification is not answered: the agent would silently ignore it. */
  async #refuseUnlessTakingPart(sessionId: string): Promise<void> {
    const access = await this.#options.accessTo(sessionId)
    if (access === undefined) throw new SandlotError('not_found', 'There is no such chat.')
    refuseWatchers(access)
  }

  /** Only for a chat that is followed here. */
  async #typing(sessionId: string): Promise<void> {
    if (!this.#sessions.has(sessionId)) return
    const connection = await (await this.#readerOf(sessionId)).get()
    await connection.notify(EXT.typing, { user: this.#options.user, sessionId })
  }

  async #cancelCall(sessionId: string, toolCallId: string): Promise<void> {
    const params = { user: this.#options.user, sessionId, toolCallId }
    await this.#with(sessionId, ({ connection }) => connection.request(EXT.cancelCall, params))
  }

  async #unqueue(sessionId: string, messageId: string): Promise<void> {
    const params = { user: this.#options.user, sessionId, messageId }
    const { why } = unqueueResult.parse(
      await this.#with(sessionId, ({ connection }) => connection.request(EXT.unqueue, params)),
    )
    if (why === 'sent')
      throw new SandlotError('conflict', 'The agent had read this message before you took it back.')
  }

  async #approve(frame: Extract<ClientFrame, { type: 'ai_chat_approve' }>): Promise<void> {
    const { type: _type, ...answer } = frame
    const { user, mayMakeRules } = this.#options
    await this.#with(
      frame.sessionId,
      ({ connection }) => answerApproval(connection, { user, mayMakeRules }, answer),
      { mayRepeat: () => false },
    )
  }

  #onNotification(method: string, params: unknown): void {
    if (this.#closed) return
    if (method === methods.client.session.update) {
      if (isUpdate(params)) this.#onUpdate(params.sessionId, params.update)
    } else if (method === EXT.sessionUpdates) {
      const { data } = sessionUpdates.safeParse(params)
      if (data !== undefined) for (const update of data.updates) this.#onUpdate(data.sessionId, update)
    } else if (method === EXT.promptAccepted) {
      const { data } = promptAccepted.safeParse(params)
      if (data?.requestId !== undefined) this.#prompts.accepted(data.requestId, data.promptId, data.sessionId)
    } else if (method === EXT.filesChanged) {
      const { data } = filesChanged.safeParse(params)
      if (data !== undefined) this.#options.send({ type: 'ai_chat_files', paths: data.paths })
    } else if (method === EXT.sessionClosed) {
      const { data } = sessionClosed.safeParse(params)
      if (data !== undefined) this.#onClosed(data.sessionId)
    }
  }

  /** Its share has ended. */
  #onClosed(sessionId: string): void {
    if (!this.#sessions.has(sessionId)) return
    this.#sessions.forget(sessionId)
    this.#refuse(new SandlotError('not_found', 'This chat is no longer shared with you.'), { sessionId })
  }

  #onUpdate(sessionId: string, update: unknown): void {
    const cursor = this.#sessions.cursorOf(sessionId)
    if (cursor === undefined) return
    const read = readUpdates.get(update, () => readUpdate(update))
    if (read.problems.length > 0) {
      const message = read.ok ? 'a part of an event cannot be read' : 'the agent sent an unknown event'
      this.#options.log.warn({ problem: read.problems.join('; ') }, message)
    }
    if (!read.ok) return
    const seq = seqOf(read.data)
    if (seq !== undefined && !isLive(read.data) && !cursor.take(seq)) return
    // The event as received: parsing drops fields that a newer agent may have added.
    const received = read.value as SessionEvent
    const event =
      seq === undefined
        ? received
        : withoutImageBytes(`/api/sessions/${encodeURIComponent(sessionId)}`, received)
    this.#options.send({ type: 'ai_chat_event', sessionId, event })
    const { promptId } = metaOf(event)
    const inner = sandlotEventOf(event)
    if (inner?.type === 'prompt_ended' && promptId !== undefined)
      this.#prompts.ended(sessionId, promptId, inner.stopReason)
  }
}

function isUpdate(params: unknown): params is { sessionId: string; update: unknown } {
  const isObject = typeof params === 'object' && params !== null
  return isObject && 'sessionId' in params && typeof params.sessionId === 'string' && 'update' in params
}

function readUpdate(update: unknown): ReturnType<typeof readReadable<SessionEvent>> {
  const { success, data } = plainLiveText.safeParse(update)
  return success ? { ok: true, value: update, data, problems: [] } : readReadable(sessionEvent, update)
}

interface PendingPrompt {
  /** Known once it is accepted. */
  promptId?: string
  done: boolean
}

class PendingPrompts {
  readonly #send: (frame: ServerFrame) => void
  /** By request id. */
  readonly #pending = new Map<string, PendingPrompt>()

  /** `send` must not throw or wait. */
  constructor(send: (frame: ServerFrame) => void) {
    this.#send = send
  }

  get size(): number {
    return this.#pending.size
  }

  add(requestId: string): PendingPrompt {
    const prompt: PendingPrompt = { done: false }
    this.#pending.set(requestId, prompt)
    return prompt
  }

  remove(requestId: string, prompt: PendingPrompt): void {
    // Submitted again in between: the entry belongs to that submission.
    if (this.#pending.get(requestId) === prompt) this.#pending.delete(requestId)
  }

  /** Sends once for each submission, whether the agent accepts at once or only with its answer. */
  accepted(requestId: string, promptId: string, sessionId: string): void {
    const prompt = this.#pending.get(requestId)
    if (prompt === undefined || prompt.promptId !== undefined) return
    prompt.promptId = promptId
    this.#send({ type: 'ai_chat_accepted', requestId, sessionId, promptId })
  }

  /** Called for the event, which every prompt has, also one that another client submitted. */
  ended(sessionId: string, promptId: string, stopReason: StopReason): void {
    for (const prompt of this.#pending.values()) if (prompt.promptId === promptId) prompt.done = true
    this.#send({ type: 'ai_chat_done', sessionId, promptId, stopReason })
  }

  /** Called for the answer, which repeats the end; sends `ai_chat_done` where no event has. */
  answered(sessionId: string, promptId: string, stopReason: StopReason): void {
    for (const prompt of this.#pending.values()) {
      if (prompt.promptId !== promptId || prompt.done) continue
      prompt.done = true
      this.#send({ type: 'ai_chat_done', sessionId, promptId, stopReason })
    }
  }
}
