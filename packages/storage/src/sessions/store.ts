/**
 * What ai-agent keeps. One writing process (ai-agent); the service opens the same data read-only
 * for lists and output ranges (`SessionReader`). A settled event and its effects are one
 * transaction.
 */
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { SandboxLedger } from '@sandlot/sandbox/ledger'
import type { AuditLog, AuditReads } from '../audit/audit.ts'
import type { StorageError } from '../storage-error.ts'
import type { RuleStore } from './rules.ts'
import type { NotificationRow } from '../shares/notifications.ts'
import type { InstructionRows } from '../people/instructions.ts'
import type { AgentSettingsRows } from '../people/agent-settings.ts'
import type { PromptQueueRows } from '../usage/prompt-queue.ts'
import type { McpServerRows } from '../people/mcp-servers.ts'
import type { ModelEndpointRows } from '../people/model-endpoints.ts'
import type { PeopleRows } from '../people/people.ts'
import type { ReplicaReads, ReplicaRows } from '../replicas/replicas.ts'
import type { RetentionReads, RetentionRows } from '../retention/retention.ts'
import type { SecretRows } from '../people/secrets.ts'
import type { ApprovalRow, Effects, ForkedSession, NoRoom, OutputRow, SessionRow } from '../tables/records.ts'
import type { FoundTexts } from '../search/search.ts'
import type { ChatReads, ChatRows, MarksFilter } from '../shares/chats.ts'
import type { SearchQuery } from '@sandlot/shared/chat/search'
import type { ReaderOf, ShareReads, ShareRows } from '../shares/shares.ts'
import type { SpentTogether, UserSpent } from '../usage/usage.ts'
import type { Together, UsageReads } from '../usage/usage-sums.ts'

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
  /** Rows of the outbox with a larger id, in order. */
  noticesAfter(id: number, limit: number): Promise<NotificationRow[]>
  /** Stored bytes `[from, to)`; shorter where fewer are stored. */
  readOutput(sessionId: string, callId: string, from: number, to: number): Promise<Uint8Array>
  close(): Promise<void>
}

/**
 * A session that was taken over: its log, which no other writer can change, and the epoch that
 * writes need.
 */
export interface Ownership {
  epoch: number
  events: SessionEvent[]
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
