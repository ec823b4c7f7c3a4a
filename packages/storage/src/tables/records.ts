/** Records of the sessions store as its callers see them. */
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { NotificationKind } from '@sandlot/shared/chat/notifications'
import type { EndReason, FailureReason } from '@sandlot/shared/chat/reasons'
import type { Rule } from '@sandlot/shared/chat/rules'

export interface SessionRow {
  id: string
  userId: string
  /** As the client sent it; ours is `/workspace`. */
  cwd: string
  title: string | null
  mode: Mode
  createdAt: number
  updatedAt: number
  /** Number of the last settled event; 0 when there is none. */
  lastSeq: number
  /** The prompt that has started and not ended, if any. */
  runningPromptId: string | null
  /** Approvals that wait for an answer. */
  waiting: number
  /** How its last prompt ended, and when; absent: none has, or it is not known. */
  ended?: { reason: EndReason; at: number } | undefined
  /** When the prompt that has started ended, where the store refused its end. */
  unsavedEndAt?: number | undefined
}

export interface ApprovalRow {
  sessionId: string
  toolCallId: string
  askedAt: number
  expiresAt: number
  /** Null while it waits. */
  answeredAt: number | null
  optionId: string | null
  by: string | null
}

export interface OutputRow {
  sessionId: string
  callId: string
  /** Bytes that are stored from 0 on, without a hole. */
  storedBytes: number
  /** Bytes that the call produced; more than `storedBytes` when the limit cut it. */
  totalBytes: number
  lines: number
  complete: boolean
  /** Retention has removed its bytes. */
  removed?: boolean
}

/** The row of a session that begins with the log of another one. */
export interface ForkedSession {
  id: string
  userId: string
  cwd: string
  mode: Mode
  title: string | null
  /** Epoch milliseconds. */
  at: number
}

/** A rule that belongs to a person; `origin` is always `user`. */
export type UserRule = Omit<Rule, 'origin'>

/** A notice to one person. */
export interface NewNotification {
  userId: string
  kind: NotificationKind
  ref: string
  /** The tool's name, or who mentioned or shared; never what a tool is called with, or any text. */
  about?: string
}

/**
 * Why something is not stored: its user's budget is used up, or the disk of the database is nearly
 * full.
 */
export type NoRoom = 'budget' | 'disk'

/** What else changes in the transaction that stores events. */
export interface Effects {
  title?: string
  mode?: Mode
  /** The prompt that runs from now on, or null: none. */
  runningPromptId?: string | null
  /** How the last prompt ended; `store_failed`: the running one has, and its end was refused. */
  ended?: { reason: EndReason | 'store_failed'; at: number }
  /** The user for whom the run of `runningPromptId` counts; absent: the session's. */
  chargedTo?: string | undefined
  /** Remembers a client's request id with its prompt, for idempotent submission. */
  submission?: { userId: string; requestId: string; promptId: string }
  approvalAsked?: { toolCallId: string; askedAt: number; expiresAt: number }
  /** Rejected with `conflict` (whole transaction) when it was answered before. */
  approvalAnswered?: { toolCallId: string; answeredAt: number; optionId: string | null; by: string }
  /** To people who may be away. */
  notices?: readonly NewNotification[]
  /** Lines of the audit log. */
  audit?: readonly NewAudit[]
  /** Rules that this user keeps from now on. */
  rules?: readonly UserRule[]
  /** Final counts of a call's output. */
  output?: { callId: string; totalBytes: number; lines: number }
  usage?: {
    promptId: string
    model: string
    input: number
    output: number
    cached: number
    reasoning: number
    /** US dollars; absent where no price is known. */
    cost?: number
    /** Calls that the answer made; absent: none. */
    calls?: number
    at: number
    /** The user for whom it counts; absent: the session's. */
    chargedTo?: string | undefined
  }
  /** Kept for statistics. */
  outcome?: {
    promptId: string
    callId: string
    tool: string
    status: 'completed' | 'failed'
    reason?: FailureReason
    runMs: number
    waitMs: number
    /** What it produced, also what is not stored; absent where it had no output. */
    outputBytes?: number
    at: number
    /** As of `usage`. */
    chargedTo?: string | undefined
  }
}
