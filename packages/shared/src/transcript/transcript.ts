/**
 * The screen is a fold of the log: events in, transcript out. Pure, idempotent, with structural
 * sharing (an entry keeps its identity unless it changed, and an event that changes nothing returns
 * the same transcript), so that a view can memoise rows.
 *
 * What makes it converge however a stream is cut, resent and resumed:
 * - a settled event at or below `seq` was folded before and changes nothing; one beyond `seq + 1`
 *   would leave a hole and is not folded (`leavesHole`): resume from `seq`;
 * - settled entries stand in the order of their numbers, live ones behind them;
 * - a settled value replaces what its id had gathered live, and live pieces that come later are
 *   ignored;
 * - the end of a prompt removes whatever of it was only ever live.
 */
import { type PromptPlace, placeOf } from './branches.ts'
import { type DraftedCall, draftOf, endsDrafts, withDraft } from './call-drafts.ts'
import type { PlanEntry, SessionEvent } from '../chat/events.ts'
import { type EventOf, isLive, metaOf, seqOf, textOf } from '../chat/events.ts'
import type { SandlotMeta } from '../chat/event-meta.ts'
import type { MessageImage } from '../chat/images.ts'
import type { InstructionFile } from '../chat/instruction-files.ts'
import type { ModelWait, NoteEvent } from './cause-words.ts'
import { addPiece } from './live-output.ts'
import type { Mode } from '../chat/mode.ts'
import type { QueueWait } from '../chat/queue-wait.ts'
import type { SandlotEvent } from '../chat/sandlot-event.ts'
import { announcedCall, failuresOf, updatedCall } from './calls.ts'
import type { Author } from '../chat/shares.ts'
import { NOTHING_SPENT, type SpentSoFar, foldSpent } from './spent.ts'
import {
  type CallEntry,
  type CallProgress,
  type EndEntry,
  type Entry,
  type QueuedEntry,
  isSettled,
  messageEntry,
  queuedEntry,
  withImage,
} from './entries.ts'

/** A user who sees the chat now. */
export interface Present extends Author {
  typing?: boolean | undefined
}

export interface Transcript {
  /** Number of the last settled event folded: the cursor for a resume. */
  readonly seq: number
  readonly title: string | null
  readonly mode: Mode | null
  /** The session's choice for its next prompt; null: the deployment's default. */
  readonly model: { readonly name: string; readonly thoughtLevel?: string | undefined } | null
  /** All branches, in the order of the log. */
  readonly entries: readonly Entry[]
  /** In order of their start. */
  readonly prompts: readonly PromptPlace[]
  readonly plan: readonly PlanEntry[]
  /** The running prompt, if any. */
  readonly prompt: {
    readonly id: string
    readonly requestId?: string | undefined
    readonly startedAt: number
  } | null
  /** A request to the model failed and is retried; null after any result. */
  readonly wait: (ModelWait & { readonly waitMs: number; readonly until: number }) | null
  /** The prompt is queued; null once it starts. */
  readonly queue: QueueWait | null
  /** Calls that the model is writing, in its order. */
  readonly drafts: readonly DraftedCall[]
  /** Messages that the running prompt has not read yet. */
  readonly queued: readonly QueuedEntry[]
  /** Tokens in the context and its size, as of the last answer. `assumed`: the size is a guess. */
  readonly context: { readonly used: number; readonly size: number; readonly assumed: boolean } | null
  /** Files of the workspace in the current instructions. */
  readonly instructionFiles: readonly InstructionFile[]
  /** All branches. */
  readonly spent: SpentSoFar
  /** Ids whose live text was withdrawn. */
  readonly withdrawn: readonly string[]
  /** Known authors, each once. */
  readonly authors: readonly Author[]
  /** Current viewers of a shared chat; empty with only one. */
  readonly people: readonly Present[]
  /** Listening ports in the owner's sandbox, while background commands run. */
  readonly ports: readonly number[]
}

export function emptyTranscript(): Transcript {
  return {
    seq: 0,
    title: null,
    mode: null,
    model: null,
    entries: [],
    prompts: [],
    plan: [],
    prompt: null,
    wait: null,
    queue: null,
    drafts: [],
    queued: [],
    context: null,
    instructionFiles: [],
    spent: NOTHING_SPENT,
    withdrawn: [],
    authors: [],
    people: [],
    ports: [],
  }
}

/**
 * True when settled events between the transcript's `seq` and this one are missing: resume from
 * `transcript.seq`.
 */
export function leavesHole(transcript: Transcript, event: SessionEvent): boolean {
  const seq = seqOf(event)
  return seq !== undefined && seq > transcript.seq + 1
}

/** Fold one event. See the head of this file for the rules. */
export function foldTranscript(transcript: Transcript, event: SessionEvent): Transcript {
  if (isLive(event)) return foldLive(transcript, event)
  const seq = seqOf(event)
  if (seq === undefined || seq <= transcript.seq || leavesHole(transcript, event)) return transcript
  const folded = foldSettled({ ...transcript, spent: foldSpent(transcript.spent, event) }, event)
  return { ...folded, drafts: endsDrafts(event) ? [] : folded.drafts, wait: null, queue: null, seq }
}

/**
 * The transcript of one branch: without entries and running prompts of others. Entries outside of
 * prompts, like comments, are in all. Returns the transcript itself if the branch has every prompt.
 */
export function branchShown(transcript: Transcript, branch: readonly string[]): Transcript {
  const { prompts, prompt } = transcript
  const path = new Set(branch)
  const others = new Set(prompts.flatMap(({ id }) => (path.has(id) ? [] : [id])))
  if (others.size === 0) return transcript
  const entries = transcript.entries.filter((entry) => !others.has(promptOf(entry) ?? ''))
  const shown = { ...transcript, entries }
  return prompt !== null && others.has(prompt.id)
    ? { ...shown, prompt: null, plan: [], wait: null, queue: null, drafts: [] }
    : shown
}

/** Undefined: it belongs to no prompt. */
export function promptOf(entry: Entry): string | undefined {
  switch (entry.type) {
    case 'message':
    case 'call':
    case 'note':
      return entry.promptId
    case 'changes':
    case 'end':
      return entry.id
    case 'comment':
      return undefined
  }
}

// ── Settled
// ─────────────────────────────────────────────────────────────────────────────────────────────

function foldSettled(transcript: Transcript, event: SessionEvent): Transcript {
  const meta = metaOf(event)
  switch (event.sessionUpdate) {
    case 'user_message_chunk':
    case 'agent_message_chunk':
    case 'agent_thought_chunk':
      if (event.content.type === 'image') return addImage(transcript, event, event.content)
      return settle(transcript, messageEntry(event, textOf(event), true))
    case 'tool_call':
      return settle(transcript, announcedCall(event))
    case 'tool_call_update':
      return changeCall(transcript, event.toolCallId, (call) => updatedCall(call, event))
    case 'plan':
      return { ...transcript, plan: event.entries }
    case 'current_mode_update':
      return { ...transcript, mode: event.currentModeId }
    case 'usage_update':
      return {
        ...transcript,
        context: { used: event.used, size: event.size, assumed: meta.windowFrom === 'assumed' },
      }
    case 'session_info_update': {
      const titled = typeof event.title === 'string' ? { ...transcript, title: event.title } : transcript
      return meta.event === undefined ? titled : foldSandlotEvent(titled, meta.event, meta)
    }
    case 'available_commands_update':
      return transcript
  }
}

function foldSandlotEvent(transcript: Transcript, event: SandlotEvent, meta: SandlotMeta): Transcript {
  switch (event.type) {
    case 'prompt_started':
      return {
        ...transcript,
        prompt: { id: meta.promptId ?? '', requestId: event.requestId, startedAt: meta.at },
        prompts: [...transcript.prompts, placeOf(transcript.prompts, meta.promptId ?? '', event.follows)],
        plan: [],
      }
    case 'message_withdrawn':
      return withdraw(transcript, event, meta)
    case 'approval_asked':
      return changeCall(transcript, event.toolCallId, (call) => askedCall(call, event, meta))
    case 'approval_answered':
      return changeCall(transcript, event.toolCallId, (call) => answeredCall(call, event, meta))
    case 'background_ended':
      return changeCall(transcript, event.toolCallId, (call) => ({
        ...call,
        backgroundEnd: { exit: event.exit, reason: event.reason, at: meta.at },
      }))
    case 'message_queued':
      return { ...transcript, queued: [...transcript.queued, queuedEntry(event, meta.author)] }
    case 'message_unqueued':
      return withoutQueued(transcript, event.messageId)
    case 'history_mended':
      // Without an origin people notice nothing of it.
      return event.origin === undefined ? transcript : addNote(transcript, event, meta)
    case 'compacted':
    case 'model_changed':
    case 'tools_left_out':
    case 'window_learnt':
      return addNote(transcript, event, meta)
    case 'files_changed': {
      const { type: _, ...changed } = event
      return settle(transcript, { ...changed, type: 'changes', id: meta.promptId ?? '', at: meta.at })
    }
    case 'prompt_ended':
      return endPrompt(transcript, event, meta)
    case 'comment': {
      const { commentId: id, text, mentions } = event
      return settle(transcript, { type: 'comment', id, text, mentions, author: meta.author, at: meta.at })
    }
    case 'instructions':
      return { ...transcript, instructionFiles: event.files ?? [] }
    case 'model_chosen':
      return { ...transcript, model: { name: event.model, thoughtLevel: event.thoughtLevel } }
    case 'call_drafted':
    case 'model_waited':
    case 'line_waited':
    case 'presence':
    case 'ports_open':
    case 'turn_ended':
    case 'prompt_resumed':
    case 'stop_asked':
    case 'gap':
      return transcript
  }
}

function withoutQueued(transcript: Transcript, messageId: string): Transcript {
  return { ...transcript, queued: transcript.queued.filter((queued) => queued.messageId !== messageId) }
}

type Named<Type extends SandlotEvent['type']> = Extract<SandlotEvent, { type: Type }>

function askedCall(call: CallEntry, event: Named<'approval_asked'>, { at }: SandlotMeta): CallEntry {
  const { options, why = [], expiresAt, question } = event
  return { ...call, approval: { options, why, askedAt: at, expiresAt, question } }
}

function answeredCall(
  call: CallEntry,
  event: Named<'approval_answered'>,
  { author }: SandlotMeta,
): CallEntry {
  if (call.approval === undefined) return call
  const { allowed, by, optionId, reason, content, input } = event
  const answer = { allowed, by, optionId, reason, content, input, author }
  return { ...call, approval: { ...call.approval, answer } }
}

function endPrompt(transcript: Transcript, event: Named<'prompt_ended'>, meta: SandlotMeta): Transcript {
  const failures = failuresOf(transcript.entries, meta.promptId)
  const end: EndEntry = {
    type: 'end',
    id: meta.promptId ?? '',
    reason: event.reason,
    stopReason: event.stopReason,
    text: event.text,
    cause: event.cause,
    setIn: event.setIn,
    requestId: event.requestId,
    failures,
    spent: transcript.spent.prompt,
    tookMs: transcript.prompt === null ? undefined : meta.at - transcript.prompt.startedAt,
    at: meta.at,
  }
  // Removes live entries.
  const live = firstLiveOf(transcript.entries)
  const settled = live < transcript.entries.length ? transcript.entries.slice(0, live) : transcript.entries
  const entries = event.internal === 'store_failed' ? settled.map((entry) => lostCall(entry, meta)) : settled
  names.set(entries, namesOf(transcript.entries))
  return settle({ ...transcript, prompt: null, entries }, end)
}

/** The part that was read stays, at its position and marked as cut. */
function withdraw(
  transcript: Transcript,
  { messageId, why, shown }: Extract<SandlotEvent, { type: 'message_withdrawn' }>,
  { promptId, turn, at }: SandlotMeta,
): Transcript {
  const withdrawn = [...transcript.withdrawn, messageId]
  const known = transcript.entries.some((entry) => entry.id === messageId && isSettled(entry))
  if (shown === undefined || known) {
    const entries = transcript.entries.filter((entry) => entry.id !== messageId || isSettled(entry))
    return { ...transcript, entries, withdrawn }
  }
  const { role, text } = shown
  const entry: Entry = {
    type: 'message',
    id: messageId,
    role,
    text,
    settled: true,
    cut: why,
    promptId,
    turn,
    at,
  }
  return { ...settle(transcript, entry), withdrawn }
}

// ── Live
// ────────────────────────────────────────────────────────────────────────────────────────────────

function foldLive(transcript: Transcript, event: SessionEvent): Transcript {
  const meta = metaOf(event)
  switch (event.sessionUpdate) {
    case 'agent_message_chunk':
    case 'agent_thought_chunk':
      return foldLiveText(transcript, event, meta.offset ?? 0)
    case 'tool_call_update':
      return changeCall(transcript, event.toolCallId, (call) => {
        if (isOver(call)) return call
        const output = meta.output === undefined ? call.output : addPiece(call.output, meta.output)
        const progress =
          meta.progress === undefined ? call.progress : progressOf(call, meta.progress, meta.at)
        if (output === call.output && progress === call.progress) return call
        return { ...call, output, progress }
      })
    case 'session_info_update':
      if (meta.event?.type === 'presence') return { ...transcript, people: meta.event.people }
      if (meta.event?.type === 'line_waited') return foldLine(transcript, meta.event, meta)
      // An end that could not be stored yet; the stored one replaces it.
      if (meta.event?.type === 'prompt_ended' && transcript.prompt?.id === meta.promptId)
        return foldSandlotEvent(transcript, meta.event, meta)
      if (meta.event?.type === 'ports_open') return { ...transcript, ports: meta.event.ports }
      return meta.event?.type === 'model_waited'
        ? foldWait(transcript, meta.event, meta)
        : foldDraft(transcript, event)
    default:
      return transcript
  }
}

function foldWait(
  transcript: Transcript,
  event: Extract<SandlotEvent, { type: 'model_waited' }>,
  { promptId, at }: SandlotMeta,
): Transcript {
  if (transcript.prompt === null || transcript.prompt.id !== promptId) return transcript
  const { why, waitMs, retry, of } = event
  return { ...transcript, wait: { why, retry, of, waitMs, until: at + waitMs }, queue: null }
}

function foldLine(
  transcript: Transcript,
  event: Extract<SandlotEvent, { type: 'line_waited' }>,
  { promptId }: SandlotMeta,
): Transcript {
  if (transcript.prompt === null || transcript.prompt.id !== promptId) return transcript
  return { ...transcript, wait: null, queue: event.place === 0 ? null : event }
}

/** A repeated message keeps its first time. */
function progressOf(call: CallEntry, said: NonNullable<SandlotMeta['progress']>, at: number): CallProgress {
  return { ...said, since: call.progress?.message === said.message ? call.progress.since : at }
}

/** A draft of a complete or withdrawn message is late, and ignored. */
function foldDraft(transcript: Transcript, event: SessionEvent): Transcript {
  const { promptId, turn } = metaOf(event)
  const draft = draftOf(event)
  if (draft === undefined || transcript.prompt === null || transcript.prompt.id !== promptId)
    return transcript
  const late = transcript.entries.some(
    (entry) =>
      (entry.type === 'call' && entry.promptId === promptId && entry.turn === turn) ||
      (entry.type === 'message' && entry.id === draft.messageId && entry.settled),
  )
  if (late || transcript.withdrawn.includes(draft.messageId)) return transcript
  const drafts = withDraft(transcript.drafts, draft)
  return drafts === transcript.drafts ? transcript : { ...transcript, drafts, wait: null, queue: null }
}

function foldLiveText(
  transcript: Transcript,
  event: EventOf<'agent_message_chunk' | 'agent_thought_chunk'>,
  offset: number,
): Transcript {
  if (transcript.withdrawn.includes(event.messageId) || transcript.prompt === null) return transcript
  const at = transcript.entries.findLastIndex((entry) => entry.id === event.messageId)
  const known = transcript.entries[at]
  const piece = textOf(event)
  if (known === undefined) {
    // A piece with a missed beginning: the snapshot of a resume, or the settled message, brings it
    // whole.
    return offset > 0
      ? transcript
      : {
          ...transcript,
          wait: null,
          queue: null,
          entries: [...transcript.entries, messageEntry(event, piece, false)],
        }
  }
  if (known.type !== 'message' || known.settled) return transcript
  const fresh = piece.slice(known.text.length - offset)
  if (offset > known.text.length || offset + piece.length <= known.text.length) return transcript
  return replaceAt(transcript, at, { ...known, text: known.text + fresh })
}

// ── Entries
// ─────────────────────────────────────────────────────────────────────────────────────────────

/** A call of a prompt whose log ends before its outcome. */
function lostCall(entry: Entry, { promptId, at }: SandlotMeta): Entry {
  if (entry.type !== 'call' || entry.promptId !== promptId || isOver(entry)) return entry
  const rawOutput = { forModel: 'Its result couldn’t be saved.' }
  return { ...entry, status: 'failed', reason: 'unknown_effect', rawOutput, endedAt: at }
}

function isOver({ status }: { status: CallEntry['status'] }): boolean {
  return status === 'completed' || status === 'failed'
}

/**
 * Names of entries in these lists: each contains at least its own. A long history is folded without
 * a search for each event.
 */
const names = new WeakMap<readonly Entry[], Set<string>>()

function namesOf(entries: readonly Entry[]): Set<string> {
  return names.get(entries) ?? new Set(entries.map(nameOf))
}

function nameOf({ type, id }: Entry): string {
  return `${type} ${id}`
}

/** Lists made by the `foldTogether` that runs. */
let unseen: WeakSet<readonly Entry[]> | undefined

/**
 * Runs folds of which only the last transcript is looked at: they change the list that the first
 * one copies. Else a history of n entries costs n copies of up to n.
 */
export function foldTogether<T>(folds: () => T): T {
  unseen = new WeakSet()
  try {
    return folds()
  } finally {
    unseen = undefined
  }
}

function changeable(entries: readonly Entry[]): Entry[] {
  if (unseen?.has(entries) === true) return entries as Entry[]
  const copy = entries.slice()
  unseen?.add(copy)
  return copy
}

/** Put a settled entry after the settled ones and before live ones, replacing its live version. */
function settle(transcript: Transcript, entry: Entry): Transcript {
  const { entries: before } = transcript
  const known = namesOf(before)
  const name = nameOf(entry)
  const entries = known.has(name) ? before.filter((other) => nameOf(other) !== name) : changeable(before)
  entries.splice(firstLiveOf(entries), 0, entry)
  names.set(entries, known.add(name))
  return withAuthor({ ...transcript, entries }, entry)
}

/** Live entries come after the settled ones. */
function firstLiveOf(entries: readonly Entry[]): number {
  return entries.findLastIndex(isSettled) + 1
}

function withAuthor(transcript: Transcript, entry: Entry): Transcript {
  const author = entry.type === 'message' || entry.type === 'comment' ? entry.author : undefined
  if (author === undefined || transcript.authors.some(({ id }) => id === author.id)) return transcript
  return { ...transcript, authors: [...transcript.authors, author] }
}

/** Images come after the text of their message, as events of their own. */
function addImage(
  transcript: Transcript,
  event: EventOf<'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk'>,
  image: MessageImage,
): Transcript {
  const at = transcript.entries.findLastIndex(isSettled)
  const last = transcript.entries[at]
  const isBehind = last?.type === 'message' && event.messageId.startsWith(`${last.id}_`)
  if (isBehind) return replaceAt(transcript, at, withImage(last, image))
  return settle(transcript, withImage(messageEntry(event, '', true), image))
}

/**
 * Room is made in consecutive steps: they share one note, which mentions a summary if any step made
 * one.
 */
function addNote(
  transcript: Transcript,
  event: NoteEvent,
  { seq = 0, promptId, at }: SandlotMeta,
): Transcript {
  const note = { type: 'note', id: `note_${seq}`, event, promptId, at } as const
  const last = transcript.entries.findLast(isSettled)
  if (note.event.type !== 'compacted' || last?.type !== 'note' || last.event.type !== 'compacted')
    return settle(transcript, note)
  if (note.event.summary === '') return transcript
  return replaceAt(transcript, transcript.entries.indexOf(last), note)
}

function changeCall(transcript: Transcript, id: string, change: (call: CallEntry) => CallEntry): Transcript {
  const at = transcript.entries.findLastIndex((entry) => entry.type === 'call' && entry.id === id)
  const call = transcript.entries[at]
  if (call === undefined || call.type !== 'call') return transcript
  const changed = change(call)
  return changed === call ? transcript : replaceAt(transcript, at, changed)
}

function replaceAt(transcript: Transcript, at: number, entry: Entry): Transcript {
  const known = names.get(transcript.entries)
  const entries = changeable(transcript.entries)
  entries[at] = entry
  if (known !== undefined) names.set(entries, known.add(nameOf(entry)))
  return { ...transcript, entries }
}
