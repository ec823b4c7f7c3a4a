/**
 * One reader's chat: frames in, frames out, through one ACP connection of its own. Behind a browser socket, and behind one
 * `POST /api/chat`. Opened when first needed; when it is lost, every session that was open is loaded again from the last
 * number sent. Knows nothing of WebSockets or HTTP.
 */
import { createHash } from 'node:crypto'
import { methods } from '@agentclientprotocol/sdk'
import { EXT, approveResult, promptAccepted, promptResultMeta } from '@sandlot/shared/acp-meta'
import type { AgentUser } from '@sandlot/shared/acp-meta'
import { SandlotError, toErrorBody } from '@sandlot/shared/errors'
import { isLive, metaOf, sandlotEventOf, seqOf, sessionEvent } from '@sandlot/shared/events'
import { stopReason } from '@sandlot/shared/reasons'
import type { Mode } from '@sandlot/shared/mode'
import type { OnError } from '@sandlot/shared/sandlot-event'
import type { SessionEvent } from '@sandlot/shared/events'
import type { StopReason } from '@sandlot/shared/reasons'
import type { ClientFrame, ServerFrame } from '@sandlot/shared/frames'
import { sessionId as sessionIdShape } from '@sandlot/shared/ids'
import { MAX_MESSAGE_IMAGE_BYTES } from '@sandlot/shared/images'
import { z } from 'zod'
import type { AgentConnection } from './agent/agent-client.ts'
import type { AgentLink } from './agent/agent-link.ts'
import { ReaderConnection } from './agent/reader-connection.ts'
import { Cursor } from './cursor.ts'
import { withoutImageBytes } from './event-images.ts'
import { InOrder } from './in-order.ts'
import type { Logger } from './log.ts'
import type { Uploads } from './uploads.ts'

export interface ChatOptions {
  user: AgentUser
  agent: AgentLink
  log: Logger
  /** Must not throw or wait. */
  send: (frame: ServerFrame) => void
  /** Whether the user has this session. Asked before what the agent would not answer. */
  owns: (sessionId: string) => Promise<boolean>
  uploads: Uploads
  /** Awaited before each prompt is passed on; what it throws refuses the prompt. */
  beforePrompt?: () => Promise<void>
}

/** A prompt as the chat's owner wants it; what `ai_chat` is for a browser. */
export interface PromptRequest {
  requestId: string
  /** Absent: a new session. */
  sessionId?: string | undefined
  text: string
  /** Ids of images that were sent before. */
  images?: readonly string[] | undefined
  /** Of the session from now on. */
  mode?: Mode | undefined
  whenBusy: 'steer' | 'queue' | 'refuse'
  /** Make the session if there is none of this id; without `mode` in the given mode, or else in the agent's default. */
  create?: { mode?: Mode }
  /** Nobody can answer an approval. */
  unattended?: boolean
  /** What a failed call means for the prompt. */
  onError?: OnError | undefined
  /** Of the session from now on. */
  model?: string | undefined
  thoughtLevel?: string | undefined
}

/** How a prompt ended, as the agent's answer repeats it. */
export interface ChatEnd {
  promptId: string
  stopReason: StopReason
}

/** As ACP has it. */
type PromptContent = ({ type: 'text'; text: string } | { type: 'image'; mimeType: string; data: string })[]

interface OpenSession {
  cursor: Cursor
  /** Loads of one session go one after another, so that the last one decides. */
  loading: Promise<void>
}

interface Prompt {
  /** Known once it is accepted. */
  promptId?: string
  done: boolean
  onAccepted: () => void
}

const CWD = '/workspace'
/** What one session may have waiting here. A person does not get there. */
const MAX_WAITING_FRAMES = 64

const updateParams = z.object({ sessionId: z.string(), update: z.unknown() })
const newResult = z.object({ sessionId: sessionIdShape })
const promptResult = z.object({ stopReason, _meta: z.object({ sandlot: promptResultMeta }) })

export class Chat {
  readonly #options: ChatOptions
  readonly #connection: ReaderConnection
  readonly #sessions = new Map<string, OpenSession>()
  /** By request id, until answered. */
  readonly #prompts = new Map<string, Prompt>()
  /** By session: what a reader says about one is passed on in the order in which they said it. */
  readonly #order = new InOrder(MAX_WAITING_FRAMES)

  constructor(options: ChatOptions) {
    this.#options = options
    this.#connection = new ReaderConnection({
      agent: options.agent,
      log: options.log,
      onNotification: (method, params) => this.#onNotification(method, params),
      wanted: () => this.#sessions.size > 0,
      onBack: (connection) => this.#loadAgain(connection),
    })
  }

  /** Never rejects: what goes wrong is an `ai_chat_error`. Resolves when the frame is dealt with; for `ai_chat`, at its end. */
  async handle(frame: ClientFrame): Promise<void> {
    try {
      await this.#dispatch(frame)
    } catch (error) {
      this.#refuse(error, {
        ...('requestId' in frame ? { requestId: frame.requestId } : {}),
        ...(frame.sessionId === undefined ? {} : { sessionId: frame.sessionId }),
      })
    }
  }

  /** Leaves; prompts go on in the agent. */
  close(): void {
    this.#connection.close()
  }

  #refuse(error: unknown, about: { requestId?: string; sessionId?: string }): void {
    if (this.#connection.closed) return
    if (!(error instanceof SandlotError)) this.#options.log.error({ err: error, ...about }, 'a frame failed')
    const { code, message } = toErrorBody(error, about.requestId)
    this.#options.send({ type: 'ai_chat_error', ...about, code, message })
  }

  async #dispatch(frame: ClientFrame): Promise<void> {
    switch (frame.type) {
      case 'ai_chat':
        return void (await this.prompt(frame))
      case 'ai_chat_resume':
        return this.resume(frame.sessionId, frame.after)
      case 'ai_chat_cancel':
        return frame.toolCallId === undefined
          ? this.#order.run(frame.sessionId, () => this.cancel(frame.sessionId))
          : this.#cancelCall(frame.sessionId, frame.toolCallId)
      case 'ai_chat_approve':
        return this.#approve(frame)
      case 'ai_chat_mode':
        return this.#order.run(frame.sessionId, () => this.#setMode(frame.sessionId, frame.modeId))
      case 'ai_chat_model':
        return this.#order.run(frame.sessionId, () => this.#setModel(frame.sessionId, frame))
    }
  }

  /**
   * Resolves at the prompt's end. Throws `SandlotError` when it was not accepted; a connection that is lost after that is no
   * error: it answers undefined, and the events come after the reconnect.
   */
  async prompt(request: PromptRequest): Promise<ChatEnd | undefined> {
    const session = request.sessionId ?? sessionIdOf(this.#options.user.id, request.requestId)
    const { end } = await this.#order.run(session, async () => {
      await this.#options.beforePrompt?.()
      const content = await this.#contentOf(request)
      const connection = await this.#connection.get()
      const sessionId = await this.#sessionFor(connection, request)
      const taken = Promise.withResolvers<void>()
      const end = this.#submit(connection, sessionId, content, request, taken.resolve)
      // What reaches the agent at once, it begins side by side. Once it has the prompt, the next need not wait for the end.
      await Promise.race([taken.promise, end])
      return { end }
    })
    return end
  }

  async #submit(
    connection: AgentConnection,
    sessionId: string,
    content: PromptContent,
    request: PromptRequest,
    onAccepted: () => void,
  ): Promise<ChatEnd | undefined> {
    const prompt: Prompt = { done: false, onAccepted }
    this.#prompts.set(request.requestId, prompt)
    const known = this.#sessions.has(sessionId)
    if (!known) this.#open(sessionId, new Cursor())
    const { user } = this.#options
    const sandlot = {
      user,
      requestId: request.requestId,
      whenBusy: request.whenBusy,
      ...(request.unattended === true ? { unattended: true } : {}),
      ...(request.onError === undefined ? {} : { onError: request.onError }),
    }
    try {
      const answer = await connection.request(methods.agent.session.prompt, {
        sessionId,
        prompt: content,
        _meta: { sandlot },
      })
      const { stopReason, _meta } = promptResult.parse(answer)
      this.#accepted(request.requestId, _meta.sandlot.promptId, sessionId)
      // Of a submission that was made before, the end may be long past, or yet to come: a resume tells.
      if (_meta.sandlot.duplicate !== true) this.#done(sessionId, _meta.sandlot.promptId, stopReason)
      return { promptId: _meta.sandlot.promptId, stopReason }
    } catch (error) {
      const lostOnTheWay = error instanceof SandlotError && error.code === 'agent_unavailable'
      if (lostOnTheWay && prompt.promptId !== undefined) return undefined
      // Of a session that the agent refuses nothing will come, so it is not asked for after a reconnect.
      const refused = error instanceof SandlotError && error.code === 'not_found'
      if (refused && !known) this.#sessions.delete(sessionId)
      throw error
    } finally {
      this.#prompts.delete(request.requestId)
    }
  }

  /** Throws `not_found` and `too_large`: a message that the agent could not take whole would cost the connection to it. */
  async #contentOf({ text, images = [] }: PromptRequest): Promise<PromptContent> {
    const { uploads, user } = this.#options
    const content: PromptContent = text === '' ? [] : [{ type: 'text', text }]
    let size = 0
    for (const id of images) {
      const { mimeType, bytes } = await uploads.read(user.id, id)
      size += bytes.length
      if (size > MAX_MESSAGE_IMAGE_BYTES) throw tooMuchAttached()
      content.push({ type: 'image', mimeType, data: bytes.toString('base64') })
    }
    return content
  }

  /** Everything settled after `after`, what is in flight, then live. Resolves when caught up. */
  async resume(sessionId: string, after: number): Promise<void> {
    const known = this.#sessions.get(sessionId)
    known?.cursor.restart(after)
    const session = known ?? this.#open(sessionId, new Cursor(after))
    try {
      const connection = await this.#connection.get()
      await this.#load(connection, sessionId, session, after)
    } catch (error) {
      // Of a session that the agent refuses nothing will come. Of one that it could not answer for, after the reconnect.
      const later = error instanceof SandlotError && error.code === 'agent_unavailable'
      if (later) this.#connection.restore()
      else if (known === undefined) this.#sessions.delete(sessionId)
      throw error
    }
  }

  async #cancelCall(sessionId: string, toolCallId: string): Promise<void> {
    const connection = await this.#connection.get()
    await connection.request(EXT.cancelCall, { user: this.#options.user, sessionId, toolCallId })
  }

  /** Stops the running prompt. */
  async cancel(sessionId: string): Promise<void> {
    const { user, owns } = this.#options
    const connection = await this.#connection.get()
    // A notification: a foreign session would be ignored without a word.
    if (!(await owns(sessionId))) throw new SandlotError('not_found', 'There is no such session.')
    await connection.notify(methods.agent.session.cancel, { sessionId, _meta: { sandlot: { user } } })
  }

  async #approve(frame: Extract<ClientFrame, { type: 'ai_chat_approve' }>): Promise<void> {
    const { type: _type, ...answer } = frame
    const connection = await this.#connection.get()
    const result = approveResult.parse(
      await connection.request(EXT.approve, { ...answer, user: this.#options.user }),
    )
    if (result.answered) return
    throw new SandlotError(
      'conflict',
      `This was answered before${result.by === undefined ? '' : ` (${result.by})`}.`,
    )
  }

  async #setMode(sessionId: string, modeId: Mode): Promise<void> {
    const connection = await this.#connection.get()
    const sandlot = { user: this.#options.user }
    await connection.request(methods.agent.session.setMode, { sessionId, modeId, _meta: { sandlot } })
  }

  /** The model first: which levels there are is the model's. */
  async #setModel(
    sessionId: string,
    { model, thoughtLevel }: { model?: string | undefined; thoughtLevel?: string | null | undefined },
  ): Promise<void> {
    const connection = await this.#connection.get()
    const _meta = { sandlot: { user: this.#options.user } }
    const set = (configId: string, value: string): Promise<unknown> =>
      connection.request(methods.agent.session.setConfigOption, { sessionId, configId, value, _meta })
    if (model !== undefined) await set('model', model)
    if (thoughtLevel !== undefined) await set('thought_level', thoughtLevel ?? 'default')
  }

  /** The id of the session to prompt: there already, or made now. */
  async #sessionFor(connection: AgentConnection, request: PromptRequest): Promise<string> {
    const wanted = request.sessionId
    if (wanted !== undefined && request.create === undefined) {
      if (request.mode !== undefined) await this.#setMode(wanted, request.mode)
      await this.#setModel(wanted, request)
      return wanted
    }
    // The same submission names the same session, so that a client that did not hear the answer can ask again.
    const sessionId = wanted ?? sessionIdOf(this.#options.user.id, request.requestId)
    const mode = request.mode ?? request.create?.mode
    const { model, thoughtLevel } = request
    const sandlot = {
      user: this.#options.user,
      sessionId,
      ...(mode === undefined ? {} : { mode }),
      ...(model === undefined ? {} : { model }),
      ...(thoughtLevel === undefined ? {} : { thoughtLevel }),
    }
    try {
      const made = newResult.parse(
        await connection.request(methods.agent.session.new, { cwd: CWD, mcpServers: [], _meta: { sandlot } }),
      )
      this.#open(made.sessionId, new Cursor(0))
      return made.sessionId
    } catch (error) {
      if (!(error instanceof SandlotError) || error.code !== 'conflict') throw error
      // The client that asks again for its new session has seen nothing of it.
      if (wanted === undefined && !this.#sessions.has(sessionId)) await this.resume(sessionId, 0)
      if (wanted !== undefined && request.mode !== undefined) await this.#setMode(sessionId, request.mode)
      if (wanted !== undefined) await this.#setModel(sessionId, request)
      return sessionId
    }
  }

  #open(sessionId: string, cursor: Cursor): OpenSession {
    const session = { cursor, loading: Promise.resolve() }
    this.#sessions.set(sessionId, session)
    return session
  }

  async #load(
    connection: AgentConnection,
    sessionId: string,
    session: OpenSession,
    after: number,
  ): Promise<void> {
    const sandlot = { user: this.#options.user, after }
    const mine = session.loading.then(async () => {
      await connection.request(methods.agent.session.load, {
        sessionId,
        cwd: CWD,
        mcpServers: [],
        _meta: { sandlot },
      })
      this.#options.send({ type: 'ai_chat_caught_up', sessionId, seq: session.cursor.upTo })
    })
    session.loading = mine.catch(() => undefined)
    return mine
  }

  /** Loads every open session from where its reader stands. Rejects when the agent is lost again. */
  async #loadAgain(connection: AgentConnection): Promise<void> {
    for (const [sessionId, session] of this.#sessions) {
      try {
        await this.#load(connection, sessionId, session, session.cursor.upTo)
      } catch (error) {
        if (error instanceof SandlotError && error.code === 'agent_unavailable') throw error
        this.#sessions.delete(sessionId)
        this.#refuse(error, { sessionId })
      }
    }
  }

  #onNotification(method: string, params: unknown): void {
    if (this.#connection.closed) return
    if (method === methods.client.session.update) this.#onUpdate(params)
    else if (method === EXT.promptAccepted) {
      const accepted = promptAccepted.safeParse(params)
      if (accepted.success && accepted.data.requestId !== undefined) {
        this.#accepted(accepted.data.requestId, accepted.data.promptId, accepted.data.sessionId)
      }
    }
  }

  #onUpdate(params: unknown): void {
    const { data } = updateParams.safeParse(params)
    const session = data === undefined ? undefined : this.#sessions.get(data.sessionId)
    if (data === undefined || session === undefined) return
    const parsed = sessionEvent.safeParse(data.update)
    if (!parsed.success) {
      this.#options.log.warn({ problem: parsed.error.message }, 'the agent sent an event that we do not know')
      return
    }
    const seq = seqOf(parsed.data)
    if (seq !== undefined && !isLive(parsed.data) && !session.cursor.take(seq)) return
    // The event as it came, not as parsed: parsing drops what a newer agent may have added.
    const event = withoutImageBytes(data.sessionId, data.update as SessionEvent)
    this.#options.send({ type: 'ai_chat_event', sessionId: data.sessionId, event })
    const { promptId } = metaOf(event)
    const inner = sandlotEventOf(event)
    if (inner?.type === 'prompt_ended' && promptId !== undefined) {
      for (const prompt of this.#prompts.values()) if (prompt.promptId === promptId) prompt.done = true
      this.#options.send({
        type: 'ai_chat_done',
        sessionId: data.sessionId,
        promptId,
        stopReason: inner.stopReason,
      })
    }
  }

  /** Once for each submission, whether the agent says so at once or only with the end. */
  #accepted(requestId: string, promptId: string, sessionId: string): void {
    const prompt = this.#prompts.get(requestId)
    if (prompt === undefined || prompt.promptId !== undefined) return
    prompt.promptId = promptId
    prompt.onAccepted()
    this.#options.send({ type: 'ai_chat_accepted', requestId, sessionId, promptId })
  }

  /** The answer repeats the end; should it come first, or alone, this is what says it. */
  #done(sessionId: string, promptId: string, reason: z.infer<typeof stopReason>): void {
    for (const prompt of this.#prompts.values()) {
      if (prompt.promptId !== promptId || prompt.done) continue
      prompt.done = true
      this.#options.send({ type: 'ai_chat_done', sessionId, promptId, stopReason: reason })
    }
  }
}

function tooMuchAttached(): SandlotError {
  const most = `${MAX_MESSAGE_IMAGE_BYTES / 1024 / 1024} MiB`
  return new SandlotError(
    'too_large',
    `The images of a message may have ${most} together. Send some with the next one.`,
  )
}

/** The session that a submission without one makes. */
export function sessionIdOf(userId: string, requestId: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([userId, requestId]))
    .digest('hex')
  return `s_${digest.slice(0, 26)}`
}
