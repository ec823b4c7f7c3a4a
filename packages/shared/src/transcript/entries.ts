/** Entries of a transcript: messages, calls, ends of prompts, notes. */
import type { Spent } from './spent.ts'
import type {
  CallStatus,
  ExitInfo,
  OutputInfo,
  RawOutput,
  ToolCallContent,
  ToolKind,
  ToolLocation,
} from '../chat/call.ts'
import { type EventKind, type EventOf, metaOf } from '../chat/events.ts'
import type { FilesChanged } from '../chat/file-changes.ts'
import type { FailurePattern } from './failure-pattern.ts'
import { type MessageImage, WITHOUT_WORDS } from '../chat/images.ts'
import type { LiveOutput } from './live-output.ts'
import type { NoteEvent } from './cause-words.ts'
import type { Question, QuestionContent } from '../chat/question.ts'
import type { EndReason, ErrorCause, FailureReason, SetIn, StopReason } from '../chat/reasons.ts'
import type { RuleReason } from '../chat/rules.ts'
import type { PermissionOption, SandlotEvent } from '../chat/sandlot-event.ts'
import type { Author } from '../chat/shares.ts'

/** The author; absent: the chat's owner. */
interface Authored {
  readonly author?: Author | undefined
}

export interface MessageEntry extends Authored {
  readonly type: 'message'
  /** The message's id. */
  readonly id: string
  readonly role: 'user' | 'assistant' | 'thought'
  readonly text: string
  /** Attachments, in the user's order. */
  readonly images?: readonly MessageImage[]
  /** False while it streams. */
  readonly settled: boolean
  /** The reason that it was interrupted here; the model does not read it. */
  readonly cut?: string
  readonly promptId?: string | undefined
  readonly turn?: number | undefined
  /** Epoch milliseconds of its first event. */
  readonly at: number
}

interface Approval {
  readonly options: readonly PermissionOption[]
  /** The reasons to ask. */
  readonly why: readonly RuleReason[]
  readonly askedAt: number
  readonly expiresAt: number
  /** Present for a question instead of an approval. */
  readonly question?: Question | undefined
  readonly answer?: {
    allowed: boolean
    by: string
    optionId?: string | undefined
    reason?: string | undefined
    content?: QuestionContent | undefined
    /** The arguments as changed by the user. */
    input?: Readonly<Record<string, unknown>> | undefined
    author?: Author | undefined
  }
}

/** A running call's own progress text. */
export interface CallProgress {
  readonly message: string
  readonly done?: number | undefined
  readonly total?: number | undefined
  /** Epoch milliseconds of the first event with this message. */
  readonly since: number
}

export interface CallEntry {
  readonly type: 'call'
  readonly id: string
  readonly name: string
  readonly title: string
  readonly kind: ToolKind
  readonly status: CallStatus
  readonly rawInput: unknown
  readonly locations: readonly ToolLocation[]
  /** Content made by the tool (text, diffs). Without it show `rawOutput.forModel`. */
  readonly content: readonly ToolCallContent[]
  readonly rawOutput?: RawOutput
  /** Live output while it runs; empty once the outcome is there. */
  readonly output: LiveOutput
  readonly outputInfo?: OutputInfo
  readonly exit?: ExitInfo
  readonly reason?: FailureReason
  readonly progress?: CallProgress
  readonly timing?: {
    waitMs: number
    runMs: number
    cached?: boolean | undefined
    retries?: number | undefined
  }
  readonly approval?: Approval
  /** The end of its background command. */
  readonly backgroundEnd?: {
    exit?: ExitInfo | undefined
    reason?: FailureReason | undefined
    /** Epoch milliseconds. */
    at: number
  }
  readonly promptId?: string | undefined
  readonly turn?: number | undefined
  readonly announcedAt: number
  /** The start of its run. */
  readonly startedAt?: number
  readonly endedAt?: number
}

/** The end of a prompt. */
export interface EndEntry {
  readonly type: 'end'
  /** The prompt's id. */
  readonly id: string
  readonly reason: EndReason
  readonly stopReason: StopReason
  /** A plain sentence if the model wrote nothing. */
  readonly text?: string | undefined
  /** With `error`. */
  readonly cause?: ErrorCause | undefined
  /** The place of the setting that may have caused the error. */
  readonly setIn?: SetIn | undefined
  /** The provider's own id of the last failed request. */
  readonly requestId?: string | undefined
  /** Its last calls failed for one cause. */
  readonly failures?: FailurePattern
  readonly spent: Spent
  /** From its beginning; undefined: not known. */
  readonly tookMs?: number | undefined
  readonly at: number
}

/** Workspace changes of a prompt. */
export interface ChangesEntry extends FilesChanged {
  readonly type: 'changes'
  /** The prompt's id. */
  readonly id: string
  readonly at: number
}

/** An event next to the conversation, at its position. */
export interface NoteEntry {
  readonly type: 'note'
  readonly id: string
  readonly event: NoteEvent
  readonly promptId?: string | undefined
  readonly at: number
}

/** A comment for other users; the model does not read it. */
export interface CommentEntry extends Authored {
  readonly type: 'comment'
  readonly id: string
  readonly text: string
  /** User ids. */
  readonly mentions: readonly string[]
  readonly at: number
}

export type Entry = MessageEntry | CallEntry | ChangesEntry | EndEntry | NoteEntry | CommentEntry

const ROLE = {
  user_message_chunk: 'user',
  agent_message_chunk: 'assistant',
  agent_thought_chunk: 'thought',
} as const satisfies Partial<Record<EventKind, MessageEntry['role']>>

/** The known part of a message. */
export function messageEntry(
  event: EventOf<keyof typeof ROLE>,
  text: string,
  settled: boolean,
): MessageEntry {
  const meta = metaOf(event)
  return {
    type: 'message',
    id: event.messageId,
    role: ROLE[event.sessionUpdate],
    text,
    settled,
    author: meta.author,
    promptId: meta.promptId,
    turn: meta.turn,
    at: meta.at,
  }
}

/** The message with one more image. The model's text of a message with only images is not shown. */
export function withImage(entry: MessageEntry, image: MessageImage): MessageEntry {
  const { mimeType, data, uri } = image
  const images = [...(entry.images ?? []), { mimeType, data, uri }]
  return { ...entry, text: entry.text === WITHOUT_WORDS ? '' : entry.text, images }
}

/** A message that the agent has not read yet. */
export interface QueuedEntry extends Authored {
  readonly messageId: string
  readonly text: string
  readonly images: readonly MessageImage[]
}

export function queuedEntry(
  event: Extract<SandlotEvent, { type: 'message_queued' }>,
  author: Author | undefined,
): QueuedEntry {
  const { messageId, text, images = [] } = event
  return { messageId, text: images.length > 0 && text === WITHOUT_WORDS ? '' : text, images, author }
}

/** False for entries with live events only. */
export function isSettled(entry: Entry): boolean {
  return entry.type !== 'message' || entry.settled
}
