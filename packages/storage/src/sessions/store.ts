/**
 * The sessions store of ai-agent, its only writing process; the service opens the same data
 * read-only (`SessionReader`). A settled event and its effects are one transaction.
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
import type { SearchQuery } from '@sandlot/shared/search/search'
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
   * Newest first: this user's, and, with their teams, those shared with them. `before`: the
   * `updatedAt` of the last row of the previous page.
   */
  listSessions(
    who: string | ReaderOf,
    page?: {
      before?: number
      limit?: number
      /** Only with this folder. */
      cwd?: string
      /** Only with this text in the name, ignoring the case of A to Z. */
      title?: string
      /** True: only with a pending approval. */
      waiting?: boolean
      /** Only with these marks. */
      marks?: MarksFilter
    },
  ): Promise<SessionRow[]>
  /** Hits in the reader's own chats and in those shared with them. */
  search(who: ReaderOf, query: SearchQuery): Promise<FoundTexts>
  /** Settled events with `seq > after`, in order. */
  readEvents(sessionId: string, after?: number, limit?: number): Promise<SessionEvent[]>
  outputInfo(sessionId: string, callId: string): Promise<OutputRow | undefined>
  /** For all calls of a session. */
  outputsOf(sessionId: string): Promise<OutputRow[]>
  /** Rows of the outbox with a larger id, in order. */
  notificationsAfter(id: number, limit: number): Promise<NotificationRow[]>
  /** Stored bytes `[from, to)`; shorter if fewer are stored. */
  readOutput(sessionId: string, callId: string, from: number, to: number): Promise<Uint8Array>
  close(): Promise<void>
}

/** A taken-over session: its log, which no other writer can change, and the epoch for writes. */
export interface Ownership {
  epoch: number
  events: SessionEvent[]
}

/**
 * A new session. `owned`: by its creator, like after `takeOver`; absent where the creator may not
 * write to it.
 */
export type CreatedSession = SessionRow & { owned?: Ownership }

/** The part of a store that the runner of one session uses. */
export interface SessionRecords extends Pick<SessionReader, 'readOutput'> {
  /**
   * Become the only owner of a session: later writes of an earlier owner are rejected with
   * `StorageError('not_owner')`. Rejects with `not_found`.
   */
  takeOver(sessionId: string): Promise<Ownership>
  /** Rejects with `StorageError('not_owner')` if another writer has taken over the session. */
  checkOwner(sessionId: string, epoch: number): Promise<void>
  /**
   * Store settled events with their effects in one transaction, numbered densely from `lastSeq +
   * 1`. Live events are a programming error. Returns the events with their `seq`. `epoch`: the
   * writer's, from `takeOver`; absent: any writer. `after`: the last event number that the writer
   * knows; with another one (a database that has lost its last commits) it is no owner either.
   */
  append(
    sessionId: string,
    events: readonly SessionEvent[],
    effects?: Effects,
    epoch?: number,
    after?: number,
  ): Promise<SessionEvent[]>
  /**
   * Add bytes to a call's output at `offset`. Stored bytes are ignored, a hole is an error.
   * Batched: durable when the promise resolves; or it resolves with the reason that they, and the
   * rest of this output, are only counted. `epoch` as in `append`.
   */
  appendOutput(
    sessionId: string,
    callId: string,
    offset: number,
    bytes: Uint8Array,
    epoch?: number,
  ): Promise<NoRoom | undefined>
  /**
   * The reason that so many bytes of optional data cannot be stored for this user; undefined: they
   * can.
   */
  missingRoom(userId: string, bytes: number): Promise<NoRoom | undefined>
  /** The prompt that this user submitted under this request id, if any. */
  findSubmission(
    userId: string,
    requestId: string,
  ): Promise<{ sessionId: string; promptId: string } | undefined>
  approval(sessionId: string, toolCallId: string): Promise<ApprovalRow | undefined>
  /**
   * A user's usage since `at`, in all sessions, including deleted ones. Running prompts count until
   * `now`. Epoch milliseconds.
   */
  spentSince(userId: string, at: number, now: number): Promise<UserSpent>
  /**
   * Combined usage since midnight UTC of this day (epoch milliseconds). Running prompts count until
   * `now`; without it `ms` is 0.
   */
  spentTogether(of: Together, at: number, now?: number): Promise<SpentTogether>
}

export interface SessionStore extends SessionReader, SessionRecords {
  /**
   * Number of approvals since `at` (epoch milliseconds), by session of this user, latest first.
   * Counts pending, answered and expired ones.
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
  readonly promptQueue: PromptQueueRows
  readonly mcpServers: McpServerRows
  /** Once a replica is registered, writes with an epoch require a claim on the session's user. */
  readonly replicas: ReplicaRows
  /**
   * With these settled events, numbered from 1, in one transaction. `project`: the user's, which
   * contains it. Rejects with `conflict` if the id exists.
   */
  createSession(
    row: { id: string; userId: string; cwd: string; mode: Mode; at: number; project?: string },
    events?: readonly SessionEvent[],
  ): Promise<CreatedSession>
  /**
   * A new session with these events (numbered from 1) and copies of the outputs of their calls,
   * read from the source. It is visible when it is complete. Rejects with `conflict` if the id
   * exists, `not_found` if the source is removed, and `store_full` without room for it.
   */
  forkSession(sourceId: string, fork: ForkedSession, events: readonly SessionEvent[]): Promise<SessionRow>
  /** Deletes its events, outputs and approvals too. Does nothing if there is none. */
  deleteSession(id: string, audit?: NewAudit): Promise<void>
  /** The reason that writes fail now; undefined: they work. */
  problem(): Promise<StorageError | undefined>
  /** Sessions with an unfinished prompt, for a restart to resume. `userIds`: only of these. */
  unfinished(userIds?: Iterable<string>): Promise<SessionRow[]>
}
