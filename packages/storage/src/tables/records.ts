/** Records of the sessions store for its callers. */
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { NotificationKind } from '@sandlot/shared/chat/notifications'
import type { EndReason, FailureReason } from '@sandlot/shared/chat/reasons'
import type { Rule } from '@sandlot/shared/chat/rules'

export interface SessionRow {
  id: string
  userId: string
  /** The client's value; ours is `/workspace`. */
  cwd: string
  title: string | null
  mode: Mode
  createdAt: number
  updatedAt: number
  /** Number of the last settled event; 0 when there is none. */
  lastSeq: number
  /** The unfinished prompt, if any. */
  runningPromptId: string | null
  /** Pending approvals. */
  waiting: number
  /** The end of its last prompt; absent: none, or not known. */
  ended?: { reason: EndReason; at: number } | undefined
  /** The end of the running prompt, if the store refused it. */
  unsavedEndAt?: number | undefined
}

export interface ApprovalRow {
  sessionId: string
  toolCallId: string
  askedAt: number
  expiresAt: number
  /** Null while it is pending. */
  answeredAt: number | null
  optionId: string | null
  by: string | null
}

export interface OutputRow {
  sessionId: string
  callId: string
  /** Stored bytes from 0 on, without a hole. */
  storedBytes: number
  /** Produced bytes; more than `storedBytes` if a limit cut it. */
  totalBytes: number
  lines: number
  complete: boolean
  /** Retention has removed its bytes. */
  removed?: boolean
}

/** A session that begins with the log of another one. */
export interface ForkedSession {
  id: string
  userId: string
  cwd: string
  mode: Mode
  title: string | null
  /** Epoch milliseconds. */
  at: number
}

/** A user's rule; `origin` is always `user`. */
export type UserRule = Omit<Rule, 'origin'>

/** A notification to one user. */
export interface NewNotification {
  userId: string
  kind: NotificationKind
  ref: string
  /**
   * The tool's name, or the author of the mention or share; never arguments of a tool, or any text.
   */
  about?: string
}

/**
 * The reason that something is not stored: the user's budget, or a nearly full disk of the
 * database.
 */
export type NoRoom = 'budget' | 'disk'

/** Other changes in the transaction that stores events. */
export interface Effects {
  title?: string
  mode?: Mode
  /** The prompt that starts now, or null: none runs. */
  runningPromptId?: string | null
  /** The end of the last prompt; `store_failed`: that of the running one, which was refused. */
  ended?: { reason: EndReason | 'store_failed'; at: number }
  /** The user for whom the run of `runningPromptId` counts; absent: the session's. */
  chargedTo?: string | undefined
  /** Stores a client's request id with its prompt, for idempotent submission. */
  submission?: { userId: string; requestId: string; promptId: string }
  approvalAsked?: { toolCallId: string; askedAt: number; expiresAt: number }
  /** Rejected with `conflict` (whole transaction) when it was answered before. */
  approvalAnswered?: { toolCallId: string; answeredAt: number; optionId: string | null; by: string }
  /** To users who may be away. */
  notifications?: readonly NewNotification[]
  /** Lines of the audit log. */
  audit?: readonly NewAudit[]
  /** New rules of this user. */
  rules?: readonly UserRule[]
  /** Final counts of a call's output. */
  output?: { callId: string; totalBytes: number; lines: number }
  usage?: {
    promptId: string
    model: string
    input: number
    output: number
    /** Absent: the provider did not say. */
    cached?: number | undefined
    reasoning: number
    /** US dollars; absent if no price is known. */
    cost?: number
    /** The answer's calls; absent: none. */
    calls?: number
    at: number
    /** The user for whom it counts; absent: the session's. */
    chargedTo?: string | undefined
  }
  /** For statistics. */
  outcome?: {
    promptId: string
    callId: string
    tool: string
    status: 'completed' | 'failed'
    reason?: FailureReason
    runMs: number
    waitMs: number
    /** Produced bytes, including unstored ones; absent without output. */
    outputBytes?: number
    at: number
    /** See `usage`. */
    chargedTo?: string | undefined
  }
}
