/** What stands in a transcript: messages, calls, ends of prompts, notes. */
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
import type { EndReason, ErrorCause, FailureReason, StopReason } from '../chat/reasons.ts'
import type { RuleReason } from '../chat/rules.ts'
import type { PermissionOption, SandlotEvent } from '../chat/sandlot-event.ts'
import type { Author } from '../chat/shares.ts'

/** Who wrote something; absent: the chat's owner. */
interface Authored {
  readonly author?: Author | undefined
}

export interface MessageEntry extends Authored {
  readonly type: 'message'
  /** The message's id. */
  readonly id: string
  readonly role: 'user' | 'assistant' | 'thought'
  readonly text: string
  /** What came with it, in the person's order. */
  readonly images?: readonly MessageImage[]
  /** False while it streams. */
  readonly settled: boolean
  /** It broke off here, and why; it is no part of the conversation that the model reads. */
  readonly cut?: string
  readonly promptId?: string | undefined
  readonly turn?: number | undefined
  /** Epoch milliseconds of its first event. */
  readonly at: number
}

interface Approval {
  readonly options: readonly PermissionOption[]
  /** Why it was asked. */
  readonly why: readonly RuleReason[]
  readonly askedAt: number
  readonly expiresAt: number
  /** Present when the user is asked for something, not for approval. */
  readonly question?: Question | undefined
  readonly answer?: {
    allowed: boolean
    by: string
    optionId?: string | undefined
    reason?: string | undefined
    content?: QuestionContent | undefined
    /** The arguments as the person changed them. */
    input?: Readonly<Record<string, unknown>> | undefined
    author?: Author | undefined
  }
}

/** A running call's own words about what it is doing. */
export interface CallProgress {
  readonly message: string
  readonly done?: number | undefined
  readonly total?: number | undefined
  /** Epoch milliseconds of the first event that said this message. */
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
  /** What the tool made for the screen (text, diffs). Without it show `rawOutput.forModel`. */
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
  /** What it had left running in the background has ended. */
  readonly backgroundEnd?: {
    exit?: ExitInfo | undefined
    reason?: FailureReason | undefined
    /** Epoch milliseconds. */
    at: number
  }
  readonly promptId?: string | undefined
  readonly turn?: number | undefined
  readonly announcedAt: number
  /** When it began to run. */
  readonly startedAt?: number
  readonly endedAt?: number
}

/** How a prompt ended. */
export interface EndEntry {
  readonly type: 'end'
  /** The prompt's id. */
  readonly id: string
  readonly reason: EndReason
  readonly stopReason: StopReason
  /** A plain sentence where the model said nothing. */
  readonly text?: string | undefined
  /** With `error`. */
  readonly cause?: ErrorCause | undefined
  /** The provider's own name for the request that failed last. */
  readonly requestId?: string | undefined
  /** Its last calls failed for one cause. */
  readonly failures?: FailurePattern
  readonly spent: Spent
  /** From its beginning; undefined: that is not known. */
  readonly tookMs?: number | undefined
  readonly at: number
}

/** What a prompt changed in the workspace. */
export interface ChangesEntry extends FilesChanged {
  readonly type: 'changes'
  /** The prompt's id. */
  readonly id: string
  readonly at: number
}

/** What a reader should know beside the conversation, in the place where it happened. */
export interface NoteEntry {
  readonly type: 'note'
  readonly id: string
  readonly event: NoteEvent
  readonly promptId?: string | undefined
  readonly at: number
}

/** What a person said to others in the chat; the model does not read it. */
export interface CommentEntry extends Authored {
  readonly type: 'comment'
  readonly id: string
  readonly text: string
  /** Ids of people. */
  readonly mentions: readonly string[]
  readonly at: number
}

export type Entry = MessageEntry | CallEntry | ChangesEntry | EndEntry | NoteEntry | CommentEntry

const ROLE = {
  user_message_chunk: 'user',
  agent_message_chunk: 'assistant',
  agent_thought_chunk: 'thought',
} as const satisfies Partial<Record<EventKind, MessageEntry['role']>>

/** A message as far as it is known. */
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

/** The message with one more image. What the model reads in place of words is nothing to show. */
export function withImage(entry: MessageEntry, image: MessageImage): MessageEntry {
  const { mimeType, data, uri } = image
  const images = [...(entry.images ?? []), { mimeType, data, uri }]
  return { ...entry, text: entry.text === WITHOUT_WORDS ? '' : entry.text, images }
}

/** A message that waits for the agent to read it. */
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

/** False for what was only ever live. */
export function isSettled(entry: Entry): boolean {
  return entry.type !== 'message' || entry.settled
}
