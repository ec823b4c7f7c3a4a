/** The chat of one signed-in user in one tab: the store, and what the user can do. */
import type { QuestionContent } from '@sandlot/shared/chat/question'
import type { Mode } from '@sandlot/shared/chat/mode'
import { messageOf } from '@sandlot/shared/base/errors'
import type { UploadedImage } from '@sandlot/shared/chat/images'
import { newId } from '@sandlot/shared/base/ids'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import type { QueuedEntry } from '@sandlot/shared/transcript/entries'
import { createStore, type StoreApi } from 'zustand/vanilla'
import { withOpened, withoutViews } from './catching-up.ts'
import { ChatConnection, type ChatConnectionParts } from './chat-connection.ts'
import {
  changeView,
  type ChatState,
  EMPTY_VIEW,
  initialState,
  mergeSessions,
  setView,
  withNotification,
} from './chat-state.ts'
import { isUnanswered, persistedOutbox, type PendingMessage } from './outbox.ts'
import { type WithdrawnMessages, withAsked } from './withdrawn-messages.ts'
import { persistedWaiting } from './waiting-frames.ts'

export interface SendOptions {
  mode?: Mode
  model?: string | undefined
  thoughtLevel?: string | null
  /** The project of a new session. */
  project?: string | undefined
  images?: readonly Pick<UploadedImage, 'id' | 'mimeType'>[]
  /** The prompt that it follows, null: none; absent: the newest. */
  follows?: string | null | undefined
}

export class Chat {
  readonly store: StoreApi<ChatState>
  readonly #fetchSessions: ChatConnectionParts['fetchSessions']
  readonly #line: ChatConnection
  /** Least recently opened first. */
  #opened: readonly string[] = []

  constructor(parts: ChatConnectionParts) {
    const { storage } = parts
    this.store = createStore<ChatState>(() =>
      initialState(persistedOutbox.load(storage), persistedWaiting.load(storage)),
    )
    this.#line = new ChatConnection(this.store, parts)
    this.#fetchSessions = (before) => parts.fetchSessions(before)
  }

  start(): void {
    this.#line.open()
  }

  stop(): void {
    this.#line.close()
  }

  /** The network or the tab came back. */
  wake(): void {
    this.#line.retryNow()
  }

  /** True if the tab is visible: a person with no visible page gets notifications. */
  setVisible(visible: boolean): void {
    this.#line.setVisible(visible)
  }

  goOffline(): void {
    this.#line.goOffline()
  }

  /** The machine slept: the socket may be dead without knowing it. */
  renew(): void {
    this.#line.renew()
  }

  // ── What the user does
  // ────────────────────────────────────────────────────────────────────────────────

  /** Show a session, or the new chat (null). */
  show(sessionId: string | null): void {
    this.#set({ ...this.#state, activeId: sessionId })
    if (sessionId === null) return
    const { opened, old } = withOpened(this.#opened, sessionId)
    this.#opened = opened
    this.#set(withoutViews(this.#state, old))
    const view = this.#state.views[sessionId]
    if (view === undefined) this.#set(setView(this.#state, sessionId, EMPTY_VIEW))
    if (view === undefined || view.sync === 'stale') this.#line.resume(sessionId)
    this.#line.loadSession(sessionId)
  }

  /**
   * Send a message. Answers its request id. Mode and thought level only count for a new session;
   * the model is asked from now on; `images` wait on the service.
   */
  send(sessionId: string | null, text: string, options: SendOptions = {}): string {
    const { mode, model, thoughtLevel, project, images = [], follows } = options
    const message: PendingMessage = {
      requestId: newId('r'),
      sessionId,
      text,
      ...(images.length === 0 ? {} : { images: images.map(({ id, mimeType }) => ({ id, mimeType })) }),
      sentAt: Date.now(),
      ...(sessionId === null && mode !== undefined ? { mode } : {}),
      model,
      follows,
      ...(sessionId === null && project !== undefined ? { project } : {}),
      ...(sessionId === null && thoughtLevel != null ? { thoughtLevel } : {}),
    }
    this.#line.setOutbox([...this.#state.outbox, message])
    this.#line.say(message)
    return message.requestId
  }

  /** Send a refused message again, as the same one; one that begins a chat in `mode`. */
  sendAgain(requestId: string, mode?: Mode): void {
    const message = this.#state.outbox.find((pending) => pending.requestId === requestId)
    if (message === undefined) return
    const { problem: _forgotten, mode: before, ...rest } = message
    const again = { ...rest, ...(rest.sessionId === null ? { mode: mode ?? before } : {}) }
    this.#line.setOutbox(this.#state.outbox.map((pending) => (pending === message ? again : pending)))
    this.#line.say(again)
  }

  discard(requestId: string): void {
    this.#line.setOutbox(this.#state.outbox.filter((pending) => pending.requestId !== requestId))
  }

  /** Stop what runs in a session, also before anything has come back. */
  stopPrompt(sessionId: string | null): void {
    const unanswered = this.#state.outbox.filter((m) => m.sessionId === sessionId && isUnanswered(m))
    if (unanswered.length > 0) {
      this.#line.setOutbox(this.#state.outbox.map((m) => (unanswered.includes(m) ? { ...m, stop: true } : m)))
    }
    if (sessionId === null) return
    this.#set(changeView(this.#state, sessionId, (view) => ({ ...view, stopping: true })))
    this.#line.deliver({ type: 'ai_chat_cancel', sessionId })
  }

  cancelCall(sessionId: string, toolCallId: string): void {
    this.#line.deliver({ type: 'ai_chat_cancel', sessionId, toolCallId })
  }

  /** Ask for a queued message back. It stays on the screen until the log says what became of it. */
  takeBack(sessionId: string, messageId: string): void {
    this.#changeBack(sessionId, (back) => withAsked(back, messageId))
    this.#line.deliver({ type: 'ai_chat_unqueue', sessionId, messageId })
  }

  /**
   * Messages returned since the last call, in that order, for the composer: each is handed out
   * once.
   */
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
    this.#line.deliver({
      type: 'ai_chat_approve',
      sessionId,
      toolCallId,
      optionId,
      ...(said === '' ? {} : { reason: said }),
      content,
    })
  }

  /** See `ChatConnection.watchFiles`: paths that the page shows of the workspace. */
  watchFiles(paths: readonly string[], changed: (paths: readonly string[]) => void): void {
    this.#line.watchFiles(paths, changed)
  }

  /** The person is writing in a shared chat. */
  typing(sessionId: string): void {
    this.#line.typing(sessionId)
  }

  setMode(sessionId: string, modeId: Mode): void {
    this.#line.deliver({ type: 'ai_chat_mode', sessionId, modeId })
  }

  /**
   * From the next message on; what is absent stays. `thoughtLevel` null: as the model does by
   * itself.
   */
  setModel(sessionId: string, change: { model?: string; thoughtLevel?: string | null }): void {
    if (change.model === undefined && change.thoughtLevel === undefined) return
    this.#line.deliver({ type: 'ai_chat_model', sessionId, ...change })
  }

  /** Say under the conversation what went wrong. */
  warn(sessionId: string, message: string): void {
    this.#set(changeView(this.#state, sessionId, (view) => withNotification(view, { code: 'page', message })))
  }

  dismissNotification(sessionId: string, id: number): void {
    this.#set(
      changeView(this.#state, sessionId, (view) => ({
        ...view,
        notifications: view.notifications.filter((n) => n.id !== id),
      })),
    )
  }

  /** The next page of the list. Answers what went wrong, if anything. */
  async loadOlder(): Promise<string | null> {
    const { nextPage } = this.#state
    if (nextPage === null) return null
    try {
      const { sessions, next } = await this.#fetchSessions(nextPage)
      // Known entries are newer than the page's.
      const merged = mergeSessions(sessions, this.#state.sessions ?? [])
      this.#set({ ...this.#state, sessions: merged, nextPage: next })
      return null
    } catch (error) {
      return messageOf(error)
    }
  }

  /** Lines that were asked for beside the pages of the list. What is known already is newer. */
  addListed(sessions: readonly SessionSummary[]): void {
    const known = this.#state.sessions
    if (known === null || sessions.length === 0) return
    this.#set({ ...this.#state, sessions: mergeSessions(sessions, known) })
  }

  /** Take a session out of the list at once; the service says the same to all tabs. */
  forget(sessionId: string): void {
    const known = this.#state.sessions ?? []
    this.#set({ ...this.#state, sessions: known.filter((summary) => summary.sessionId !== sessionId) })
  }

  get #state(): ChatState {
    return this.store.getState()
  }

  #set(state: ChatState): void {
    this.store.setState(state, true)
  }

  #changeBack(sessionId: string, change: (back: WithdrawnMessages) => WithdrawnMessages): void {
    this.#set(changeView(this.#state, sessionId, (view) => ({ ...view, back: change(view.back) })))
  }
}
