/**
 * The sessions store of ai-agent, its only writing process; the service opens the same data
 * read-only (`SessionReader`).
 */
import type { SandboxLedger } from '@sandlot/sandbox/ledger'
import type { AuditLog, AuditReads } from '../audit/audit.ts'
import type { StorageError } from '../storage-error.ts'
import type { ApprovalRows } from './approvals.ts'
import type { LogReads, LogRows } from './log.ts'
import type { OutputReads, OutputRows } from './outputs.ts'
import type { RuleStore } from './rules.ts'
import type { SessionReads, SessionRows } from './sessions.ts'
import type { NotificationReads } from '../shares/notifications.ts'
import type { InstructionRows } from '../people/instructions.ts'
import type { AgentSettingsRows } from '../people/agent-settings.ts'
import type { PromptQueueRows } from '../usage/prompt-queue.ts'
import type { McpServerRows } from '../people/mcp-servers.ts'
import type { ModelEndpointRows } from '../people/model-endpoints.ts'
import type { PeopleRows } from '../people/people.ts'
import type { ReplicaReads, StoredReplicas } from '../replicas/replicas.ts'
import type { RetentionReads, RetentionRows } from '../retention/retention.ts'
import type { SecretRows } from '../people/secrets.ts'
import type { ChatReads, ChatRows } from '../shares/chats.ts'
import type { ShareReads, ShareRows } from '../shares/shares.ts'
import type { SpentReads } from '../usage/usage.ts'
import type { UsageReads } from '../usage/usage-sums.ts'

/** Reads for the service and for folds. */
export interface SessionReader {
  readonly sessions: SessionReads
  readonly log: LogReads
  readonly outputs: OutputReads
  readonly usage: UsageReads
  readonly shares: ShareReads
  readonly chats: ChatReads
  readonly notifications: NotificationReads
  readonly admin: { readonly audit: AuditReads; readonly retention: RetentionReads }
  readonly replicas: ReplicaReads
  readonly ledger: Pick<SandboxLedger, 'list'>
  close(): Promise<void>
}

/** The part of a store that the runner of one session uses. */
export interface SessionRecords {
  readonly log: LogRows
  readonly outputs: Pick<OutputRows, 'append' | 'missingRoom' | 'read'>
  readonly approvals: Pick<ApprovalRows, 'get'>
  readonly usage: SpentReads
}

/** A person's data other than chats. */
interface PersonStores {
  readonly known: PeopleRows
  readonly rules: RuleStore
  readonly secrets: SecretRows
  readonly instructions: InstructionRows
  /** Settings by administrators, of teams too. */
  readonly settings: AgentSettingsRows
  readonly modelEndpoints: ModelEndpointRows
  readonly mcpServers: McpServerRows
}

export interface SessionStore {
  readonly sessions: SessionRows
  readonly log: LogRows
  readonly outputs: OutputRows
  readonly approvals: ApprovalRows
  readonly usage: SpentReads & UsageReads
  readonly shares: ShareRows
  readonly chats: ChatRows
  readonly notifications: NotificationReads
  readonly people: PersonStores
  readonly admin: { readonly audit: AuditLog; readonly retention: RetentionRows }
  /** Once a replica is registered, writes with an epoch require a claim on the session's user. */
  readonly replicas: StoredReplicas
  readonly ledger: SandboxLedger
  readonly promptQueue: PromptQueueRows
  /** The reason that writes fail now; undefined: they work. */
  problem(): Promise<StorageError | undefined>
  close(): Promise<void>
}
