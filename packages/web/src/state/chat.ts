/** The chat of one signed-in user in one tab: the store, the connection, and what the user can do. */
import type { QuestionContent } from '@sandlot/shared/question'
import type { Mode } from '@sandlot/shared/mode'
import type { SessionList } from '@sandlot/shared/api'
import { messageOf } from '@sandlot/shared/errors'
import type { ClientFrame, ServerFrame } from '@sandlot/shared/frames'
import type { UploadedImage } from '@sandlot/shared/images'
import { newId } from '@sandlot/shared/ids'
import type { QueuedEntry } from '@sandlot/shared/transcript-entries'
import { createStore, type StoreApi } from 'zustand/vanilla'
import type { KeyValue } from '../lib/storage.ts'
import { Connection, type ConnectionState } from '../net/connection.ts'
import { toFollow, withOpened, withoutViews, withStaleViews } from './catching-up.ts'
import {
  applyFrames,
  changeView,
  type ChatState,
  EMPTY_VIEW,
  initialState,
  mergeSessions,
  setView,
  withNotice,
  type Wish,
} from './chat-state.ts'
import { FrameBatch } from './frame-batch.ts'
import { frameOf, isUnanswered, loadOutbox, type PendingMessage, saveOutbox } from './outbox.ts'
import { type TakingBack, withAsked } from './taking-back.ts'
import { aroundMessages, withWaiting } from './waiting-frames.ts'

export interface ChatParts {
  /** `ws://…/ws` */
  url: string
  /** Where unsent messages survive a reload: of this person, in this tab only. */
  storage: KeyValue
  /** A page of the list; `before` is the `next` of the one before. */
  fetchSessions(before?: number): Promise<SessionList>
  /** The socket was refused or closed before it opened: find out whether the sign-in is gone. */
  onRefused(): void
  /** A message of this tab that began a new chat has got its session. */
  onSessionStarted(sessionId: string, requestId: string): void
  /** Run once, soon, before the next paint. */
  schedule(work: () => void): void
}

export interface SendOptions {
  mode?: Mode
  model?: string
  thoughtLevel?: string | null
  images?: readonly Pick<UploadedImage, 'id' | 'mimeType'>[]
}

export class Chat {
  readonly store: StoreApi<ChatState>
  readonly #parts: ChatParts
  readonly #connection: Connection
  readonly #frames: FrameBatch
  /** Least recently opened first. */
  #opened: readonly string[] = []

  constructor(parts: ChatParts) {
    this.#parts = parts
    this.store = createStore<ChatState>(() => initialState(loadOutbox(parts.storage)))
    this.#frames = new FrameBatch(
      (work) => parts.schedule(work),
      (frames) => this.#apply(frames),
    )
    this.#connection = new Connection(parts.url, {
      onFrame: (frame) => this.#frames.add(frame),
      onState: (state) => this.#onConnection(state),
      onRefused: () => parts.onRefused(),
      onNonsense: (problem) =>
        console.error('A frame of the service was not understood and is ignored.', problem),
    })
  }

  start(): void {
    this.#connection.open()
  }

  stop(): void {
    this.#connection.close()
  }

  /** The network or the tab came back. */
  wake(): void {
    this.#connection.retryNow()
  }

  goOffline(): void {
    this.#connection.goOffline()
  }

  /** The machine slept: the socket may be dead without knowing it. */
  renew(): void {
    this.#connection.renew()
  }

  // ── What the user does ────────────────────────────────────────────────────────────────────────────────

  /** Show a session, or the new chat (null). */
  show(sessionId: string | null): void {
    this.#set({ ...this.#state, activeId: sessionId })
    if (sessionId === null) return
    const { opened, old } = withOpened(this.#opened, sessionId)
    this.#opened = opened
    this.#set(withoutViews(this.#state, old))
    const view = this.#state.views[sessionId]
    if (view === undefined) this.#set(setView(this.#state, sessionId, EMPTY_VIEW))
    if (view === undefined || view.sync === 'stale') this.#resume(sessionId)
  }

  /** Send a message. Answers its request id. `mode` and model only count for a new session; `images` wait on the service. */
  send(sessionId: string | null, text: string, options: SendOptions = {}): string {
    const { mode, model, thoughtLevel, images = [] } = options
    const message: PendingMessage = {
      requestId: newId('r'),
      sessionId,
      text,
      ...(images.length === 0 ? {} : { images: images.map(({ id, mimeType }) => ({ id, mimeType })) }),
      sentAt: Date.now(),
      ...(sessionId === null && mode !== undefined ? { mode } : {}),
      ...(sessionId === null && model !== undefined ? { model } : {}),
      ...(sessionId === null && thoughtLevel != null ? { thoughtLevel } : {}),
    }
    this.#setOutbox([...this.#state.outbox, message])
    this.#connection.send(frameOf(message))
    return message.requestId
  }

  /** Send a refused message again, as the same one. */
  sendAgain(requestId: string): void {
    const message = this.#state.outbox.find((pending) => pending.requestId === requestId)
    if (message === undefined) return
    const { problem: _forgotten, ...again } = message
    this.#setOutbox(this.#state.outbox.map((pending) => (pending === message ? again : pending)))
    this.#connection.send(frameOf(again))
  }

  discard(requestId: string): void {
    this.#setOutbox(this.#state.outbox.filter((pending) => pending.requestId !== requestId))
  }

  /** Stop what runs in a session, also before anything has come back. */
  stopPrompt(sessionId: string | null): void {
    const unanswered = this.#state.outbox.filter((m) => m.sessionId === sessionId && isUnanswered(m))
    if (unanswered.length > 0) {
      this.#setOutbox(this.#state.outbox.map((m) => (unanswered.includes(m) ? { ...m, stop: true } : m)))
    }
    if (sessionId === null) return
    this.#set(changeView(this.#state, sessionId, (view) => ({ ...view, stopping: true })))
    this.#deliver({ type: 'ai_chat_cancel', sessionId })
  }

  cancelCall(sessionId: string, toolCallId: string): void {
    this.#deliver({ type: 'ai_chat_cancel', sessionId, toolCallId })
  }

  /** Ask for a queued message back. It stays on the screen until the log says what became of it. */
  takeBack(sessionId: string, messageId: string): void {
    this.#changeBack(sessionId, (back) => withAsked(back, messageId))
    this.#deliver({ type: 'ai_chat_unqueue', sessionId, messageId })
  }

  /** What came back since the last time, in that order, for the composer: each message is handed out once. */
  takeGot(sessionId: string): readonly QueuedEntry[] {
    const got = this.store.getState().views[sessionId]?.back.got ?? []
    if (got.length > 0) this.#changeBack(sessionId, (back) => ({ ...back, got: [] }))
    return got
  }

  /** Answer an approval by the option's id, as the event named it. */
  approve(
    sessionId: string,
    toolCallId: string,
    optionId: string,
    reason?: string,
    content?: QuestionContent,
  ): void {
    const said = reason?.trim() ?? ''
    this.#deliver({
      type: 'ai_chat_approve',
      sessionId,
      toolCallId,
      optionId,
      ...(said === '' ? {} : { reason: said }),
      ...(content === undefined ? {} : { content }),
    })
  }

  setMode(sessionId: string, modeId: Mode): void {
    this.#deliver({ type: 'ai_chat_mode', sessionId, modeId })
  }

  /** From the next message on; what is absent stays. `thoughtLevel` null: as the model does by itself. */
  setModel(sessionId: string, change: { model?: string; thoughtLevel?: string | null }): void {
    if (change.model === undefined && change.thoughtLevel === undefined) return
    this.#deliver({ type: 'ai_chat_model', sessionId, ...change })
  }

  /** Say under the conversation what went wrong. */
  warn(sessionId: string, message: string): void {
    this.#set(changeView(this.#state, sessionId, (view) => withNotice(view, { code: 'page', message })))
  }

  dismissNotice(sessionId: string, id: number): void {
    this.#set(
      changeView(this.#state, sessionId, (view) => ({
        ...view,
        notices: view.notices.filter((n) => n.id !== id),
      })),
    )
  }

  /** The next page of the list. Answers what went wrong, if anything. */
  async loadOlder(): Promise<string | null> {
    const { nextPage } = this.#state
    if (nextPage === null) return null
    try {
      const { sessions, next } = await this.#parts.fetchSessions(nextPage)
      // What is known already is newer than what a page says of it.
      const merged = mergeSessions(sessions, this.#state.sessions ?? [])
      this.#set({ ...this.#state, sessions: merged, nextPage: next })
      return null
    } catch (error) {
      return messageOf(error)
    }
  }

  /** Take a session out of the list at once; the service says the same to all tabs. */
  forget(sessionId: string): void {
    const known = this.#state.sessions ?? []
    this.#set({ ...this.#state, sessions: known.filter((summary) => summary.sessionId !== sessionId) })
  }

  // ── The wire ──────────────────────────────────────────────────────────────────────────────────────────

  get #state(): ChatState {
    return this.store.getState()
  }

  #set(state: ChatState): void {
    this.store.setState(state, true)
  }

  #changeBack(sessionId: string, change: (back: TakingBack) => TakingBack): void {
    this.#set(changeView(this.#state, sessionId, (view) => ({ ...view, back: change(view.back) })))
  }

  #setOutbox(outbox: readonly PendingMessage[]): void {
    this.#set({ ...this.#state, outbox })
    saveOutbox(this.#parts.storage, outbox)
  }

  #onConnection(connection: ConnectionState): void {
    this.#set({ ...this.#state, connection, everOpen: this.#state.everOpen || connection.status === 'open' })
    if (connection.status === 'open') this.#reconnected()
    else if (connection.status !== 'connecting') this.#set(withStaleViews(this.#state))
  }

  /** First hear what was missed, then say how to go on, then say what was not said, and last what is about that. */
  #reconnected(): void {
    this.#frames.flush()
    const { before, behind } = aroundMessages(this.#state.waiting)
    this.#set({ ...withStaleViews(this.#state), waiting: [] })
    const { outbox } = this.#state
    for (const id of toFollow(this.#state)) this.#resume(id)
    for (const frame of before) this.#deliver(frame)
    for (const message of outbox) if (isUnanswered(message)) this.#connection.send(frameOf(message))
    for (const frame of behind) this.#deliver(frame)
    this.#parts.fetchSessions().then(
      ({ sessions, next }) =>
        this.#set({ ...this.#state, sessions: mergeSessions([], sessions), nextPage: next }),
      (error: unknown) =>
        console.warn('The list of sessions could not be read; the next connection tries again.', error),
    )
  }

  /** Send, or keep until there is a socket. */
  #deliver(frame: ClientFrame): void {
    if (this.#connection.send(frame)) return
    this.#set({ ...this.#state, waiting: withWaiting(this.#state.waiting, frame) })
  }

  /** Not kept when there is no socket: every new one resumes anyway. */
  #resume(sessionId: string): void {
    const view = this.#state.views[sessionId] ?? EMPTY_VIEW
    const sent = this.#connection.send({ type: 'ai_chat_resume', sessionId, after: view.transcript.seq })
    if (sent) this.#set(setView(this.#state, sessionId, { ...view, sync: 'loading' }))
  }

  #apply(frames: readonly ServerFrame[]): void {
    const before = this.#state
    const { state, wishes } = applyFrames(before, frames)
    this.#set(state)
    if (state.outbox !== before.outbox) saveOutbox(this.#parts.storage, state.outbox)
    for (const wish of wishes) this.#grant(wish)
    this.#tellStarted(before, frames)
  }

  #grant(wish: Wish): void {
    if (wish.resume !== undefined) this.#resume(wish.resume)
    if (wish.cancel !== undefined) this.#deliver({ type: 'ai_chat_cancel', sessionId: wish.cancel })
  }

  #tellStarted(before: ChatState, frames: readonly ServerFrame[]): void {
    for (const frame of frames) {
      if (frame.type !== 'ai_chat_accepted') continue
      const message = before.outbox.find((pending) => pending.requestId === frame.requestId)
      if (message?.sessionId === null) this.#parts.onSessionStarted(frame.sessionId, frame.requestId)
    }
  }
}
