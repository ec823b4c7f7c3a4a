/**
 * State of the screen, and its change by a batch of frames. Pure: frames in, state out, with the
 * identity of everything that did not change.
 */
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { ClientFrame, ServerFrame, SessionSummary } from '@sandlot/shared/chat/frames'
import {
  emptyTranscript,
  foldTogether,
  foldTranscript,
  leavesHole,
  type Transcript,
} from '@sandlot/shared/transcript/transcript'
import type { Author } from '@sandlot/shared/chat/shares'
import type { ConnectionState } from '../net/connection.ts'
import { isInTranscript, type PendingMessage } from './outbox.ts'
import { NOTHING_WITHDRAWN, type WithdrawnMessages, withUnqueued } from './withdrawn-messages.ts'
import { waitingMode } from './waiting-frames.ts'

export interface ChatNotification {
  readonly id: number
  readonly code: string
  readonly message: string
}

/** One session as this tab knows it. */
export interface SessionView {
  readonly transcript: Transcript
  /** `fresh`: everything is here and live. `stale`: the socket was lost since. */
  readonly sync: 'loading' | 'fresh' | 'stale'
  /** Asked to stop; until the prompt has ended. */
  readonly stopping: boolean
  readonly back: WithdrawnMessages
  /** No such session, or not ours. */
  readonly missing: boolean
  /** The owner who stopped sharing this chat with the reader. */
  readonly unsharedBy: Author | null
  /** Refusals of the service about this session. */
  readonly notifications: readonly ChatNotification[]
  /**
   * The number after which something was missing at the last try to fetch it; null: nothing was
   * ever missing.
   */
  readonly chasedFrom: number | null
}

export interface ChatState {
  readonly connection: ConnectionState
  /** False until the first connection was open: no banner while the page starts. */
  readonly everOpen: boolean
  /** Null until the list is known. */
  readonly sessions: readonly SessionSummary[] | null
  /** The start of the next page of the list; null: it is complete. */
  readonly nextPage: number | null
  readonly views: Readonly<Record<string, SessionView>>
  /** In order of sending. */
  readonly outbox: readonly PendingMessage[]
  /** Everything but messages that waits for a socket. */
  readonly waiting: readonly ClientFrame[]
  /** The session on the screen; null: the new chat. */
  readonly activeId: string | null
}

export const EMPTY_VIEW: SessionView = {
  transcript: emptyTranscript(),
  sync: 'loading',
  stopping: false,
  back: NOTHING_WITHDRAWN,
  missing: false,
  unsharedBy: null,
  notifications: [],
  chasedFrom: null,
}

/** With what was not sent before a reload. */
export function initialState(
  outbox: readonly PendingMessage[],
  waiting: readonly ClientFrame[] = [],
): ChatState {
  return {
    connection: { status: 'closed' },
    everOpen: false,
    sessions: null,
    nextPage: null,
    views: {},
    outbox,
    waiting,
    activeId: null,
  }
}

/** A request of a batch to the connection. */
export interface Command {
  /** Resume after the view's `seq`. */
  resume?: string
  /** The user pressed Stop before the message was accepted. */
  cancel?: string
}

/** Apply frames in order. */
export function applyFrames(
  state: ChatState,
  frames: readonly ServerFrame[],
): { state: ChatState; commands: Command[] } {
  const commands: Command[] = []
  const next = foldTogether(() =>
    frames.reduce((before, frame) => applyFrame(before, frame, commands), state),
  )
  return { state: next === state ? state : settleOutbox(next), commands }
}

function applyFrame(state: ChatState, frame: ServerFrame, commands: Command[]): ChatState {
  switch (frame.type) {
    case 'ai_chat_event':
      return applyEvent(state, frame, commands)
    case 'ai_chat_accepted':
      return accepted(state, frame, commands)
    case 'ai_chat_caught_up':
      return caughtUp(state, frame, commands)
    case 'ai_chat_done':
      return changeView(state, frame.sessionId, (view) =>
        view.stopping ? { ...view, stopping: false } : view,
      )
    case 'ai_chat_sessions':
      return listChanged(state, frame.changed, commands)
    case 'ai_chat_files':
      return state
    case 'ai_chat_error':
      return refused(state, frame, commands)
  }
}

type FrameOf<T extends ServerFrame['type']> = Extract<ServerFrame, { type: T }>

function applyEvent(state: ChatState, frame: FrameOf<'ai_chat_event'>, commands: Command[]): ChatState {
  const { sessionId, event } = frame
  const view = state.views[sessionId]
  // An event of a session that this tab has never opened: the list says what there is to say of it.
  if (view === undefined) return state
  if (leavesHole(view.transcript, event)) {
    return view.sync === 'loading' ? state : chase(state, sessionId, view, commands)
  }
  const transcript = foldTranscript(view.transcript, event)
  let next = state
  const own = sandlotEventOf(event)
  if (own?.type === 'prompt_started' && own.requestId !== undefined) {
    next = withPromptId(next, own.requestId, sessionId, event._meta.sandlot.promptId)
  }
  if (transcript === view.transcript) return next
  const { queued } = view.transcript
  return setView(next, sessionId, {
    ...view,
    transcript,
    back:
      own?.type === 'message_unqueued'
        ? withUnqueued(view.back, own, queued, event._meta.sandlot.promptId)
        : view.back,
    stopping: view.stopping && transcript.prompt !== null,
  })
}

function accepted(state: ChatState, frame: FrameOf<'ai_chat_accepted'>, commands: Command[]): ChatState {
  const message = state.outbox.find((pending) => pending.requestId === frame.requestId)
  if (message === undefined) return state
  if (message.stop === true) commands.push({ cancel: frame.sessionId })
  let next = withPromptId(state, frame.requestId, frame.sessionId, frame.promptId)
  if (message.sessionId === null && next.views[frame.sessionId] === undefined) {
    next = setView(next, frame.sessionId, EMPTY_VIEW)
    commands.push({ resume: frame.sessionId })
  }
  return next
}

function withPromptId(
  state: ChatState,
  requestId: string,
  sessionId: string,
  promptId: string | undefined,
): ChatState {
  const at = state.outbox.findIndex((pending) => pending.requestId === requestId)
  const message = state.outbox[at]
  if (message === undefined || promptId === undefined || message.promptId === promptId) return state
  const { problem: _answered, ...rest } = message
  return { ...state, outbox: state.outbox.with(at, { ...rest, sessionId, promptId }) }
}

function caughtUp(state: ChatState, frame: FrameOf<'ai_chat_caught_up'>, commands: Command[]): ChatState {
  const view = state.views[frame.sessionId] ?? EMPTY_VIEW
  if (frame.seq < view.transcript.seq) {
    // The service knows less than we do: its data were restored from a backup. Begin again with
    // what it has.
    commands.push({ resume: frame.sessionId })
    return setView(state, frame.sessionId, { ...EMPTY_VIEW, notifications: view.notifications })
  }
  if (frame.seq > view.transcript.seq) return chase(state, frame.sessionId, view, commands)
  // The agent answers again.
  const notifications = view.notifications.filter((notification) => notification.code !== 'agent_unavailable')
  return setView(state, frame.sessionId, { ...view, sync: 'fresh', missing: false, notifications })
}

const OUTDATED = 'Sandlot was updated. Reload the page to see the rest of this chat.'

/**
 * Something is missing behind what we have: ask for it. When that brought nothing, what is missing
 * is something that this page does not understand, because the service is newer; asking again would
 * go on for ever.
 */
function chase(state: ChatState, sessionId: string, view: SessionView, commands: Command[]): ChatState {
  const from = view.transcript.seq
  if (view.chasedFrom === from) {
    const settled: SessionView = { ...view, sync: 'fresh' }
    return setView(state, sessionId, withNotification(settled, { code: 'outdated', message: OUTDATED }))
  }
  commands.push({ resume: sessionId })
  return setView(state, sessionId, { ...view, sync: 'loading', chasedFrom: from })
}

let lastNotification = 0

export function withNotification(view: SessionView, problem: Omit<ChatNotification, 'id'>): SessionView {
  const others = view.notifications.filter((notification) => notification.message !== problem.message)
  return { ...view, notifications: [...others.slice(-4), { id: ++lastNotification, ...problem }] }
}

function refused(state: ChatState, frame: FrameOf<'ai_chat_error'>, commands: Command[]): ChatState {
  const problem = { code: frame.code, message: frame.message }
  const at = state.outbox.findIndex((pending) => pending.requestId === frame.requestId)
  const message = state.outbox[at]
  if (message !== undefined) return { ...state, outbox: state.outbox.with(at, { ...message, problem }) }
  const sessionId = frame.sessionId ?? state.activeId
  if (sessionId === null) return state
  const view = state.views[sessionId] ?? EMPTY_VIEW
  if (frame.code === 'not_found' && view.transcript.seq === 0) {
    return setView(state, sessionId, { ...view, missing: true, sync: 'fresh' })
  }
  const unsharedBy = ownerOf(state, sessionId)
  const unlisted =
    view.sync === 'loading' && state.sessions?.every((known) => known.sessionId !== sessionId) === true
  if (frame.code === 'not_found' && (unsharedBy !== null || unlisted)) {
    // The chat, or only something in it: the answer to this says which.
    commands.push({ resume: sessionId })
    return setView(state, sessionId, { ...EMPTY_VIEW, unsharedBy })
  }
  // The stop stays requested: the error may be about something else, and the log has the result.
  return setView(state, sessionId, withNotification({ ...view, stopping: false }, problem))
}

function listChanged(state: ChatState, changed: readonly SessionSummary[], commands: Command[]): ChatState {
  let next: ChatState = { ...state, sessions: mergeSessions(state.sessions ?? [], changed) }
  for (const { sessionId, deleted } of changed) {
    const view = next.views[sessionId]
    if (view === undefined) continue
    if (deleted === true) {
      const unsharedBy = ownerOf(state, sessionId) ?? view.unsharedBy
      next = setView(next, sessionId, { ...EMPTY_VIEW, sync: 'fresh', missing: true, unsharedBy })
    } else if (view.missing) {
      // Shared again.
      commands.push({ resume: sessionId })
      next = setView(next, sessionId, EMPTY_VIEW)
    }
  }
  return next
}

/** Null: the reader's own, as far as the list says. */
function ownerOf({ sessions }: ChatState, sessionId: string): Author | null {
  return sessions?.find((known) => known.sessionId === sessionId)?.owner ?? null
}

/** Drop optimistic copies of what the transcript shows by now, or will never show. */
function settleOutbox(state: ChatState): ChatState {
  const left = state.outbox.filter((message) => {
    const view = message.sessionId === null ? undefined : state.views[message.sessionId]
    if (view === undefined) return true
    const isWithdrawn = message.promptId !== undefined && view.back.removed.includes(message.promptId)
    return !isWithdrawn && !isInTranscript(message, view.transcript)
  })
  return left.length === state.outbox.length ? state : { ...state, outbox: left }
}

/** Newest first; what was deleted is gone. */
export function mergeSessions(
  known: readonly SessionSummary[],
  changed: readonly SessionSummary[],
): SessionSummary[] {
  const byId = new Map(known.map((summary) => [summary.sessionId, summary]))
  for (const summary of changed) {
    if (summary.deleted === true) byId.delete(summary.sessionId)
    else byId.set(summary.sessionId, summary)
  }
  return [...byId.values()].toSorted((a, b) => b.updatedAt - a.updatedAt)
}

export function setView(state: ChatState, sessionId: string, view: SessionView): ChatState {
  return { ...state, views: { ...state.views, [sessionId]: view } }
}

export function changeView(
  state: ChatState,
  id: string,
  change: (view: SessionView) => SessionView,
): ChatState {
  const view = state.views[id]
  if (view === undefined) return state
  const changed = change(view)
  return changed === view ? state : setView(state, id, changed)
}

/** Live state may differ: text, calls and output that grow. */
export function isSettledAlike(one: SessionView, other: SessionView): boolean {
  const { transcript: before, ...others } = one
  const { transcript: after, ...now } = other
  return (
    before.seq === after.seq &&
    before.people === after.people &&
    before.prompts === after.prompts &&
    Object.entries(others).every(([name, value]) => value === now[name as keyof typeof now])
  )
}

// ── What the screen asks
// ────────────────────────────────────────────────────────────────────────────────

/** The mode in effect: an unsent one, else the log's, else the list's, else unknown. */
export function modeOf(state: ChatState, sessionId: string): Mode | null {
  const summary = state.sessions?.find((known) => known.sessionId === sessionId)
  const known = state.views[sessionId]?.transcript.mode ?? summary?.mode ?? null
  return waitingMode(state.waiting, sessionId) ?? known
}

/** True while a prompt runs or a message is on its way: there is something to stop. */
export function isBusy(state: ChatState, sessionId: string | null): boolean {
  const sending = state.outbox.some(
    (message) => message.sessionId === sessionId && message.problem === undefined,
  )
  return sending || (sessionId !== null && (state.views[sessionId]?.transcript.prompt ?? null) !== null)
}

/** Approvals that wait for this user, over all sessions. */
export function waitingCount(state: ChatState): number {
  return (state.sessions ?? []).reduce((sum, summary) => sum + summary.waiting, 0)
}
