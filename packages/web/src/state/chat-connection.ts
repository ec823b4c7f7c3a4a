/**
 * A tab's line to the service: what is sent goes over the socket, or is stored until there is one,
 * also over a reload; what arrives goes into the store. After every break the missed events come
 * first, then the unsent frames go out.
 */
import type { SessionList } from '@sandlot/shared/chat/chat-api'
import type { ClientFrame, ServerFrame, SessionSummary } from '@sandlot/shared/chat/frames'
import type { StoreApi } from 'zustand/vanilla'
import type { KeyValue } from '../lib/storage.ts'
import { Connection, type ConnectionState } from '../net/connection.ts'
import { toFollow, withStaleViews } from './catching-up.ts'
import {
  EMPTY_VIEW,
  applyFrames,
  mergeSessions,
  setView,
  type ChatState,
  type Command,
} from './chat-state.ts'
import { frameOf, isUnanswered, persistedOutbox, type PendingMessage } from './outbox.ts'
import { aroundMessages, persistedWaiting, withWaiting } from './waiting-frames.ts'

export interface ChatConnectionParts {
  /** `ws://…/ws` */
  url: string
  /** Storage of unsent data over a reload: of this person, in this tab only. */
  storage: KeyValue
  /** A page of the list; `before` is the `next` of the one before. */
  fetchSessions(before?: number): Promise<SessionList>
  /** The line of one session, also of one that is on a later page. */
  fetchSession(sessionId: string): Promise<SessionSummary>
  /** The socket was refused or closed before it opened: find out whether the sign-in is gone. */
  onRefused(): void
  /** A message of this tab that began a new chat has got its session. */
  onSessionStarted(sessionId: string, requestId: string): void
  /** Run once, soon, before the next paint. */
  schedule(work: () => void): void
}

/** The others see it for five seconds. */
const TYPING_EVERY_MS = 2_500

export class ChatConnection {
  readonly #store: StoreApi<ChatState>
  readonly #parts: ChatConnectionParts
  readonly #connection: Connection
  readonly #frames: FrameBatch
  #visible = false
  #typed = { sessionId: '', at: 0 }
  #watched: { paths: readonly string[]; changed: (paths: readonly string[]) => void } = {
    paths: [],
    changed: () => undefined,
  }

  constructor(store: StoreApi<ChatState>, parts: ChatConnectionParts) {
    this.#store = store
    this.#parts = parts
    this.#frames = new FrameBatch(
      (work) => parts.schedule(work),
      (frames) => this.#apply(frames),
    )
    this.#connection = new Connection(parts.url, {
      onFrame: (frame) => this.#frames.add(frame),
      onState: (state) => this.#onConnection(state),
      onRefused: () => parts.onRefused(),
      onInvalidFrame: (problem) =>
        console.error('A frame of the service was not understood and is ignored.', problem),
    })
  }

  open(): void {
    this.#connection.open()
  }

  close(): void {
    this.#connection.close()
  }

  /** The network or the tab came back. */
  retryNow(): void {
    this.#connection.retryNow()
  }

  goOffline(): void {
    this.#connection.goOffline()
  }

  /** The socket may be dead without knowing it. */
  renew(): void {
    this.#connection.renew()
  }

  /** Not kept when there is no socket: every new one says it again. */
  setVisible(visible: boolean): void {
    if (visible === this.#visible) return
    this.#visible = visible
    this.#connection.send({ type: 'ai_chat_visible', visible })
  }

  /** In place of those before. `changed` gets those of them in which something may have changed. */
  watchFiles(paths: readonly string[], changed: (paths: readonly string[]) => void): void {
    const before = this.#watched
    this.#watched = { paths, changed }
    if (paths.join('\0') !== before.paths.join('\0') || paths.length !== before.paths.length)
      this.#connection.send({ type: 'ai_chat_watch', paths: [...paths] })
  }

  /** That the person is writing there. Not kept: it is true only now. */
  typing(sessionId: string): void {
    const now = Date.now()
    if (this.#typed.sessionId === sessionId && now - this.#typed.at < TYPING_EVERY_MS) return
    this.#typed = { sessionId, at: now }
    this.#connection.send({ type: 'ai_chat_typing', sessionId })
  }

  /**
   * Without a socket nothing is lost: every new one says again what is unanswered in the outbox.
   */
  say(message: PendingMessage): void {
    this.#connection.send(frameOf(message))
  }

  /** Send, or keep until there is a socket. */
  deliver(frame: ClientFrame): void {
    if (this.#connection.send(frame)) return
    this.#setWaiting(withWaiting(this.#state.waiting, frame))
  }

  /** Not kept when there is no socket: every new one resumes anyway. */
  resume(sessionId: string): void {
    const view = this.#state.views[sessionId] ?? EMPTY_VIEW
    const sent = this.#connection.send({ type: 'ai_chat_resume', sessionId, after: view.transcript.seq })
    if (sent) this.#set(setView(this.#state, sessionId, { ...view, sync: 'loading' }))
  }

  /** Adds a session to the list that is on a later page of it, for its owner and access. */
  loadSession(sessionId: string): void {
    const { sessions } = this.#state
    // Before there is a list: then it looks itself.
    if (sessions === null || sessions.some((known) => known.sessionId === sessionId)) return
    this.#parts.fetchSession(sessionId).then(
      (found) => {
        const merged = mergeSessions([found], this.#state.sessions ?? [])
        this.#set({ ...this.#state, sessions: merged })
      },
      // The chat says itself that it is not there.
      () => undefined,
    )
  }

  setOutbox(outbox: readonly PendingMessage[]): void {
    this.#set({ ...this.#state, outbox })
    persistedOutbox.save(this.#parts.storage, outbox)
  }

  get #state(): ChatState {
    return this.#store.getState()
  }

  #set(state: ChatState): void {
    this.#store.setState(state, true)
  }

  #setWaiting(waiting: readonly ClientFrame[]): void {
    this.#set({ ...this.#state, waiting })
    persistedWaiting.save(this.#parts.storage, waiting)
  }

  #onConnection(connection: ConnectionState): void {
    this.#set({ ...this.#state, connection, everOpen: this.#state.everOpen || connection.status === 'open' })
    if (connection.status === 'open') this.#reconnected()
    else if (connection.status !== 'connecting') this.#set(withStaleViews(this.#state))
  }

  /**
   * First receive the missed events, then send mode and model, then unsent messages, last frames
   * about them.
   */
  #reconnected(): void {
    if (this.#visible) this.#connection.send({ type: 'ai_chat_visible', visible: true })
    const { paths } = this.#watched
    if (paths.length > 0) this.#connection.send({ type: 'ai_chat_watch', paths: [...paths] })
    this.#frames.flush()
    const { before, behind } = aroundMessages(this.#state.waiting)
    this.#set(withStaleViews(this.#state))
    this.#setWaiting([])
    const { outbox } = this.#state
    for (const id of toFollow(this.#state)) this.resume(id)
    for (const frame of before) this.deliver(frame)
    for (const message of outbox) if (isUnanswered(message)) this.say(message)
    for (const frame of behind) this.deliver(frame)
    this.#parts.fetchSessions().then(
      ({ sessions, next }) => {
        this.#set({ ...this.#state, sessions: mergeSessions([], sessions), nextPage: next })
        const { activeId } = this.#state
        if (activeId !== null) this.loadSession(activeId)
      },
      (error: unknown) =>
        console.warn('The list of chats could not be read; the next connection tries again.', error),
    )
  }

  #apply(frames: readonly ServerFrame[]): void {
    const before = this.#state
    const { state, commands } = applyFrames(before, frames)
    this.#set(state)
    if (state.outbox !== before.outbox) persistedOutbox.save(this.#parts.storage, state.outbox)
    for (const command of commands) this.#execute(command)
    for (const frame of frames) if (frame.type === 'ai_chat_files') this.#watched.changed(frame.paths)
    this.#tellStarted(before, frames)
  }

  #execute(command: Command): void {
    if (command.resume !== undefined) this.resume(command.resume)
    if (command.cancel !== undefined) this.deliver({ type: 'ai_chat_cancel', sessionId: command.cancel })
  }

  #tellStarted(before: ChatState, frames: readonly ServerFrame[]): void {
    for (const frame of frames) {
      if (frame.type !== 'ai_chat_accepted') continue
      const message = before.outbox.find((pending) => pending.requestId === frame.requestId)
      if (message?.sessionId === null) this.#parts.onSessionStarted(frame.sessionId, frame.requestId)
    }
  }
}

/** Between two batches: text that grows thirty times a second is read as it comes. */
const PAUSE_MS = 30

/**
 * Gathers frames and hands them on once per frame of the screen, and at most about thirty times a
 * second: a fast model costs one render and not one per token.
 */
class FrameBatch {
  readonly #schedule: (work: () => void) => void
  readonly #apply: (frames: readonly ServerFrame[]) => void
  #frames: ServerFrame[] = []
  #scheduled = false
  #flushedAt = 0

  /** `schedule`: run once, soon. `apply` never gets an empty batch. */
  constructor(schedule: (work: () => void) => void, apply: (frames: readonly ServerFrame[]) => void) {
    this.#schedule = schedule
    this.#apply = apply
  }

  add(frame: ServerFrame): void {
    this.#frames.push(frame)
    if (this.#scheduled) return
    this.#scheduled = true
    const work = (): void => {
      this.#scheduled = false
      this.flush()
    }
    const pause = this.#flushedAt + PAUSE_MS - performance.now()
    if (pause <= 0) this.#schedule(work)
    else setTimeout(() => this.#schedule(work), pause)
  }

  /** Now, because something is about to be decided from the state. */
  flush(): void {
    const frames = this.#frames
    if (frames.length === 0) return
    this.#frames = []
    this.#flushedAt = performance.now()
    this.#apply(frames)
  }
}
