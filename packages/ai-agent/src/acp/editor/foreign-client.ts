/**
 * Translates our event stream for foreign clients. Such a client appends every chunk, and knows
 * neither withdrawal nor live output. So the settled copy of streamed text and the echo of its own
 * prompt are dropped, output becomes the terminal convention or bounded text, and `_meta.sandlot`
 * is stripped. Pure: state in, state and updates out.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import {
  type SessionEvent,
  isLive,
  isOutcome,
  metaOf,
  sandlotEventOf,
  textOf,
} from '@sandlot/shared/chat/events'
import { type NoteEvent, noteWords } from '@sandlot/shared/transcript/cause-words'
import { endAdvice } from '@sandlot/shared/transcript/end-words'

/**
 * A message of the agent to a client's user: a `notice` where the client shows them, else a text.
 */
export interface Notice {
  severity: 'info' | 'warning'
  /** One complete line, without a full stop. */
  title: string
  /** Details, also without a full stop. */
  description?: string
}

/**
 * For a client with `session.notices`. A notice is not in the history: a missed one is not sent
 * again.
 */
export function noticeUpdate({ severity, title, description }: Notice): SessionUpdate {
  return { sessionUpdate: 'notice', severity, title, description }
}

/** The notice as a sentence. */
export function notificationText({ title, description }: Notice): string {
  return description === undefined ? `${title}.` : `${title}: ${description}.`
}

/** The notice for an event that the page shows beside the conversation. */
function noticeOfEvent(event: NoteEvent): Notice {
  return { severity: event.type === 'compacted' ? 'info' : 'warning', title: noteWords(event) }
}

/** Characters of a call's output that are repeated for a client without the terminal convention. */
const SHOWN_OUTPUT = 8_000
/** Milliseconds between two repetitions. */
const REPEAT_MS = 500

export interface ForeignOptions {
  /** The client's format of live output, from `clientCapabilities._meta`. */
  terminal: 'terminal_output' | 'terminal_output_delta' | undefined
  /** It shows where the conversation was made shorter for the model. */
  compaction?: boolean
  /** It shows notices beside the conversation. */
  notices?: boolean
}

interface ForeignCall {
  terminal: boolean
  /** Raw bytes of output seen. */
  end: number
  /** The last text of it. */
  text: string
  /** When it was last repeated, epoch milliseconds. */
  shownAt: number
}

export interface ForeignState {
  /** Characters that were shown of each message that is not settled. */
  readonly messages: ReadonlyMap<string, number>
  /** Calls without an outcome. */
  readonly calls: ReadonlyMap<string, ForeignCall>
  /** Messages that this client sent itself. */
  readonly own: ReadonlySet<string>
}

export const FOREIGN_START: ForeignState = { messages: new Map(), calls: new Map(), own: new Set() }

interface Translated {
  state: ForeignState
  updates: SessionUpdate[]
}

/** The state in which this message is the client's own, so that its echo is dropped. */
export function withOwnMessage(state: ForeignState, messageId: string): ForeignState {
  return { ...state, own: new Set(state.own).add(messageId) }
}

/** Its own message, or an image of it, whose id is the message's with a number. */
function isOwn({ own }: ForeignState, messageId: string): boolean {
  return own.has(messageId) || own.has(messageId.replace(/_\d+$/, ''))
}

/**
 * One event of ours, live or settled, as what this client should get of it: nothing, one update, or
 * two.
 */
export function forForeignClient(
  state: ForeignState,
  event: SessionEvent,
  options: ForeignOptions,
): Translated {
  switch (event.sessionUpdate) {
    case 'user_message_chunk':
      return { state, updates: isOwn(state, event.messageId) ? [] : [stripped(event)] }
    case 'agent_message_chunk':
    case 'agent_thought_chunk':
      return message(state, event)
    case 'tool_call':
      return announced(state, event, options)
    case 'tool_call_update':
      if (isOutcome(event)) return outcome(state, event, options)
      if (isLive(event)) return liveOutput(state, event, options)
      return { state, updates: [stripped(event)] }
    case 'session_info_update':
      if (typeof event.title === 'string') return { state, updates: [titled(event)] }
      return sandlotEvent(state, event, options)
    default:
      return { state, updates: [stripped(event)] }
  }
}

type Of<K extends SessionEvent['sessionUpdate']> = Extract<SessionEvent, { sessionUpdate: K }>

// ── Messages
// ────────────────────────────────────────────────────────────────────────────────────────────

function message(state: ForeignState, event: Of<'agent_message_chunk' | 'agent_thought_chunk'>): Translated {
  const shown = state.messages.get(event.messageId) ?? 0
  const offset = isLive(event) ? (metaOf(event).offset ?? shown) : 0
  const text = textOf(event)
  const fresh = offset > shown ? '' : text.slice(shown - offset)
  const messages = new Map(state.messages)
  if (isLive(event)) messages.set(event.messageId, shown + fresh.length)
  else messages.delete(event.messageId)
  const updates = fresh === '' ? [] : [stripped({ ...event, content: { type: 'text', text: fresh } })]
  return { state: { ...state, messages }, updates }
}

function sandlotEvent(
  state: ForeignState,
  event: SessionEvent,
  { compaction, notices }: ForeignOptions,
): Translated {
  const happened = sandlotEventOf(event)
  if (happened?.type === 'compacted' && compaction === true) {
    const { summary } = happened
    const content = summary === '' ? {} : { summary: [{ type: 'text' as const, text: summary }] }
    const compactionId = `compaction_${metaOf(event).seq ?? 0}`
    return {
      state,
      updates: [{ sessionUpdate: 'compaction_update', compactionId, status: 'completed', ...content }],
    }
  }
  // A requested compaction gets an answer.
  if (
    happened?.type === 'model_changed' ||
    happened?.type === 'tools_left_out' ||
    (happened?.type === 'history_mended' && happened.origin !== undefined) ||
    happened?.type === 'window_learnt' ||
    (happened?.type === 'compacted' && happened.why !== 'asked')
  )
    return { state, updates: notices === true ? [noticeUpdate(noticeOfEvent(happened))] : [] }
  if (happened?.type === 'message_withdrawn') {
    const shown = state.messages.get(happened.messageId) ?? 0
    const messages = new Map(state.messages)
    messages.delete(happened.messageId)
    const note = '\n\n(The answer broke off here and is asked for again.)\n\n'
    const isThought = happened.messageId.startsWith('t_')
    return { state: { ...state, messages }, updates: shown === 0 || isThought ? [] : [textUpdate(note)] }
  }
  if (happened?.type === 'prompt_ended' && happened.text !== undefined) {
    // The user of an editor is the administrator.
    const text = [happened.text, endAdvice(happened, true)].filter(Boolean).join(' ')
    return { state, updates: [textUpdate(text)] }
  }
  return { state, updates: [] }
}

/** A sentence of ours where the client shows only what the agent says. */
export function textUpdate(text: string): SessionUpdate {
  return { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }
}

// ── Calls
// ───────────────────────────────────────────────────────────────────────────────────────────────

function announced(state: ForeignState, event: Of<'tool_call'>, options: ForeignOptions): Translated {
  const terminal = options.terminal !== undefined && event.kind === 'execute'
  const calls = new Map(state.calls).set(event.toolCallId, { terminal, end: 0, text: '', shownAt: 0 })
  const update = stripped(event)
  if (!terminal || update.sessionUpdate !== 'tool_call')
    return { state: { ...state, calls }, updates: [update] }
  const terminalId = event.toolCallId
  return {
    state: { ...state, calls },
    updates: [
      {
        ...update,
        content: [{ type: 'terminal', terminalId }],
        _meta: { terminal_info: { terminal_id: terminalId } },
      },
    ],
  }
}

function liveOutput(state: ForeignState, event: Of<'tool_call_update'>, options: ForeignOptions): Translated {
  const { output, at } = metaOf(event)
  const call = state.calls.get(event.toolCallId)
  if (output === undefined || call === undefined || output.end <= call.end) return { state, updates: [] }
  const skipped = output.offset > call.end ? `\n… ${output.offset - call.end} bytes not shown …\n` : ''
  const data = skipped + output.data
  const text = (call.text + data).slice(-SHOWN_OUTPUT).toWellFormed()
  const due = call.terminal || at - call.shownAt >= REPEAT_MS
  const seen = { ...call, end: output.end, text, shownAt: due ? at : call.shownAt }
  const calls = new Map(state.calls).set(event.toolCallId, seen)
  if (!due) return { state: { ...state, calls }, updates: [] }
  const base = { sessionUpdate: 'tool_call_update', toolCallId: event.toolCallId } as const
  const update: SessionUpdate = call.terminal
    ? { ...base, _meta: terminalData(event.toolCallId, data, options) }
    : { ...base, content: [{ type: 'content', content: { type: 'text', text } }] }
  return { state: { ...state, calls }, updates: [update] }
}

function outcome(state: ForeignState, event: Of<'tool_call_update'>, options: ForeignOptions): Translated {
  const call = state.calls.get(event.toolCallId)
  const calls = new Map(state.calls)
  calls.delete(event.toolCallId)
  const forModel = event.rawOutput?.forModel ?? ''
  const text = { type: 'content', content: { type: 'text', text: forModel } } as const
  const update = stripped(event)
  if (update.sessionUpdate !== 'tool_call_update') return { state: { ...state, calls }, updates: [update] }
  if (call?.terminal !== true) {
    const content = update.content ?? (forModel === '' ? [] : [text])
    return { state: { ...state, calls }, updates: [{ ...update, content }] }
  }
  const { exit } = metaOf(event)
  const terminalId = event.toolCallId
  const exited = {
    terminal_id: terminalId,
    exit_code: exit !== undefined && 'code' in exit ? exit.code : null,
    signal: exit !== undefined && 'signal' in exit ? exit.signal : null,
  }
  // A command that ended before its output could be shown, or a call that never ran: the terminal
  // would stay empty.
  const unseen = call.end === 0 && forModel !== '' ? terminalData(terminalId, forModel, options) : {}
  return {
    state: { ...state, calls },
    updates: [
      { ...update, content: [{ type: 'terminal', terminalId }], _meta: { ...unseen, terminal_exit: exited } },
    ],
  }
}

function terminalData(terminalId: string, data: string, options: ForeignOptions): Record<string, unknown> {
  return { [options.terminal ?? 'terminal_output']: { terminal_id: terminalId, data } }
}

/** Editors sort their lists by the time. */
function titled(event: Of<'session_info_update'>): SessionUpdate {
  return stripped({ ...event, updatedAt: new Date(metaOf(event).at).toISOString() })
}

/** The event without what is ours alone. */
function stripped(event: SessionEvent): SessionUpdate {
  const { _meta: _ours, ...update } = event
  return update
}
