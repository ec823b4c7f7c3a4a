/**
 * What ai-agent keeps. One writing process (ai-agent); the service opens the same data read-only
 * for lists and output ranges (`SessionReader`). A settled event and its effects are one
 * transaction.
 */
import type { EndReason, FailureReason } from '@sandlot/shared/chat/reasons'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { SandboxLedger } from '@sandlot/sandbox/ledger'
import type { AuditLog, AuditReads } from '../audit/audit.ts'
import type { StorageError } from '../storage-error.ts'
import type { RuleStore, UserRule } from './rules.ts'
import type { NewNotification, NotificationRow } from '../shares/notifications.ts'
import type { InstructionRows } from '../people/instructions.ts'
import type { AgentSettingsRows } from '../people/agent-settings.ts'
import type { PromptQueueRows } from '../usage/prompt-queue.ts'
import type { McpServerRows } from '../people/mcp-servers.ts'
import type { ModelEndpointRows } from '../people/model-endpoints.ts'
import type { PeopleRows } from '../people/people.ts'
import type { ReplicaReads, ReplicaRows } from '../replicas/replicas.ts'
import type { RetentionReads, RetentionRows } from '../retention/retention.ts'
import type { SecretRows } from '../people/secrets.ts'
import type { NoRoom } from './store-room.ts'
import type { FoundTexts } from '../search/search.ts'
import type { ChatReads, ChatRows, MarksFilter } from '../shares/chats.ts'
import type { SearchQuery } from '@sandlot/shared/chat/search'
import type { ReaderOf, ShareReads, ShareRows } from '../shares/shares.ts'
import type { SpentTogether, UserSpent } from '../usage/usage.ts'
import type { Together, UsageReads } from '../usage/usage-sums.ts'

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

/** Reads for the service and for folds. */
export interface SessionReader {
  readonly audit: AuditReads
  readonly retention: RetentionReads
  readonly shares: ShareReads
  readonly chats: ChatReads
  readonly usage: UsageReads
  readonly replicas: ReplicaReads
  readonly ledger: Pick<SandboxLedger, 'list'>
  getSession(id: string): Promise<SessionRow | undefined>
  /**
   * Newest first: of this user, and, with their teams, also those that are shared with them.
   * `before` is the `updatedAt` of the last row of the page before.
   */
  listSessions(
    who: string | ReaderOf,
    page?: {
      before?: number
      limit?: number
      /** Only those of this folder. */
      cwd?: string
      /** Only those with this in their names, whatever the case of its letters from A to Z. */
      title?: string
      /** True: only those in which an approval waits. */
      waiting?: boolean
      /** Only those that they keep so. */
      kept?: MarksFilter
    },
  ): Promise<SessionRow[]>
  /** What is found in this reader's own chats and in those that are shared with them. */
  search(who: ReaderOf, query: SearchQuery): Promise<FoundTexts>
  /** Settled events with `seq > after`, in order. */
  readEvents(sessionId: string, after?: number, limit?: number): Promise<SessionEvent[]>
  outputInfo(sessionId: string, callId: string): Promise<OutputRow | undefined>
  /** Of all calls of a session. */
  outputsOf(sessionId: string): Promise<OutputRow[]>
  /** The JSON that was stored with `Effects.requestFrame` under this digest. */
  requestFrame(hash: string): Promise<string | undefined>
  /** Rows of the outbox with a larger id, in order. */
  noticesAfter(id: number, limit: number): Promise<NotificationRow[]>
  /** Stored bytes `[from, to)`; shorter where fewer are stored. */
  readOutput(sessionId: string, callId: string, from: number, to: number): Promise<Uint8Array>
  close(): Promise<void>
}

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
  /** Kept once under its digest, for replays. */
  requestFrame?: { hash: string; json: string }
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

/**
 * A session that was taken over: its log, which no other writer can change, and the epoch that
 * writes need.
 */
export interface Ownership {
  epoch: number
  events: SessionEvent[]
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

/** What the runner of one session needs of a store. */
export interface SessionRecords extends Pick<SessionReader, 'readOutput'> {
  /**
   * Become the one owner of a session: from now on what an earlier owner writes is rejected with
   * `StorageError('not_owner')`. Rejects with `not_found`.
   */
  takeOver(sessionId: string): Promise<Ownership>
  /** Rejects with `StorageError('not_owner')` when another writer has taken the session over. */
  checkOwner(sessionId: string, epoch: number): Promise<void>
  /**
   * Store settled events with their effects in one transaction, numbered densely from `lastSeq +
   * 1`. Live events are a programming error. Returns the events with their `seq`. `epoch`: the
   * writer's, from `takeOver`; absent: any writer. `after`: the number of the last event that it
   * knows; with another (a database that came back without its last commits) it is no owner either.
   */
  append(
    sessionId: string,
    events: readonly SessionEvent[],
    effects?: Effects,
    epoch?: number,
    after?: number,
  ): Promise<SessionEvent[]>
  /**
   * Add bytes to a call's output at `offset`. Bytes that are stored already are ignored, a hole is
   * an error. Batched: durable when the promise resolves; or it resolves with why they are only
   * counted, and then so is the rest of this output. `epoch` as in `append`.
   */
  appendOutput(
    sessionId: string,
    callId: string,
    offset: number,
    bytes: Uint8Array,
    epoch?: number,
  ): Promise<NoRoom | undefined>
  /** Why so many bytes more than text cannot be stored for this user; undefined: they can. */
  missingRoom(userId: string, bytes: number): Promise<NoRoom | undefined>
  /** The prompt that this user submitted under this request id, if any. */
  findSubmission(
    userId: string,
    requestId: string,
  ): Promise<{ sessionId: string; promptId: string } | undefined>
  approval(sessionId: string, toolCallId: string): Promise<ApprovalRow | undefined>
  /**
   * What a user has used up since `at`, in all sessions, also deleted ones. What still runs has run
   * until `now`. Epoch milliseconds.
   */
  spentSince(userId: string, at: number, now: number): Promise<UserSpent>
  /**
   * What these have used up together since midnight UTC of this day (epoch milliseconds). What
   * still runs has run until `now`; without it `ms` is 0.
   */
  spentTogether(of: Together, at: number, now?: number): Promise<SpentTogether>
}

export interface SessionStore extends SessionReader, SessionRecords {
  /**
   * How often a person was asked for approval since `at` (epoch milliseconds), by session of this
   * user, the latest first. Counts what waits, what they answered, and what expired.
   */
  asksSince(userId: string, at: number): Promise<{ sessionId: string; asks: number }[]>
  readonly ledger: SandboxLedger
  readonly rules: RuleStore
  readonly secrets: SecretRows
  readonly instructions: InstructionRows
  readonly people: PeopleRows
  readonly audit: AuditLog
  readonly retention: RetentionRows
  readonly shares: ShareRows
  readonly chats: ChatRows
  readonly agentSettings: AgentSettingsRows
  readonly modelEndpoints: ModelEndpointRows
  readonly line: PromptQueueRows
  readonly mcpServers: McpServerRows
  /** Once a replica is registered, writes with an epoch need the session's user to be claimed. */
  readonly replicas: ReplicaRows
  /**
   * With these settled events, numbered from 1, in one transaction. `project`: of the user, which
   * it is kept in. Rejects with `conflict` if the id exists.
   */
  createSession(
    row: { id: string; userId: string; cwd: string; mode: Mode; at: number; project?: string },
    events?: readonly SessionEvent[],
  ): Promise<SessionRow>
  /**
   * A new session with these events (numbered from 1) and with copies of the outputs of the calls
   * in them, read from the source. It is there when all of it is. Rejects with `conflict` if the id
   * exists, `not_found` if the source is gone, and `store_full` where there is no room for it.
   */
  forkSession(sourceId: string, fork: ForkedSession, events: readonly SessionEvent[]): Promise<SessionRow>
  /** Deletes its events, outputs and approvals too. Silent when there is none. */
  deleteSession(id: string, audit?: NewAudit): Promise<void>
  /** Why nothing can be written now; undefined: it can. */
  problem(): Promise<StorageError | undefined>
  /**
   * Sessions whose prompt has started and not ended: what a restart resumes. `userIds`: only
   * of these.
   */
  unfinished(userIds?: Iterable<string>): Promise<SessionRow[]>
}
