/**
 * Tables of the sessions store. Portable to PostgreSQL: text ids, epoch-ms bigints, JSON as text
 * that zod validates on read, no booleans, enums or arrays.
 */
import type { NotificationKind } from '@sandlot/shared/chat/notifications'
import type { ShareAccess } from '@sandlot/shared/chat/shares'
import type { ColumnType, Generated } from 'kysely'
import type { NoRoom } from './records.ts'

interface SessionsTable {
  id: string
  user_id: string
  cwd: string
  title: string | null
  mode: string
  created_at: number
  updated_at: number
  last_seq: number
  running_prompt_id: string | null
  /** Grows with every take-over; only the last owner may write. */
  owner_epoch: number
  /** Bytes of its events and of its stored outputs. */
  stored_bytes: Generated<number>
  /** Number of the last indexed event. */
  indexed_seq: Generated<number>
  /** The end of its last prompt; null: none, or not known. */
  ended_reason: Generated<string | null>
  ended_at: Generated<number | null>
  /** Number up to which retention has removed images. */
  images_gone_seq: Generated<number>
}

interface EventsTable {
  session_id: string
  seq: number
  at: number
  /** The event as JSON. */
  json: string
}

interface OutputsTable {
  session_id: string
  call_id: string
  stored_bytes: number
  total_bytes: number
  lines: number
  /** 1 when the call has ended and the counts are final. */
  complete: number
  /** The reason that a part was not stored, nor any later one; null: complete. */
  cut: NoRoom | 'retention' | null
}

interface OutputChunksTable {
  session_id: string
  call_id: string
  /** The chunk's offset in the output. Chunks are adjacent. */
  start_at: number
  bytes: ColumnType<Uint8Array, Uint8Array, never>
}

interface ApprovalsTable {
  session_id: string
  tool_call_id: string
  asked_at: number
  expires_at: number
  answered_at: number | null
  option_id: string | null
  answered_by: string | null
}

interface SubmissionsTable {
  user_id: string
  request_id: string
  session_id: string
  prompt_id: string
}

interface OutcomesTable {
  session_id: string
  call_id: string
  tool: string
  status: string
  reason: string | null
  run_ms: number
  wait_ms: number
  /** The user it counts for. Null, like the next two, in older rows. */
  user_id: string | null
  /** Epoch milliseconds. */
  at: number | null
  /** Produced bytes, including unstored ones; null also without output. */
  output_bytes: number | null
}

/** PostgreSQL’s client reads it as text, so computed values may be text too. */
type Bigint = ColumnType<number | string, number, number | string>

interface SandboxSlotsTable {
  slot: string
  state: string
  user_id: string | null
  uid: number
  volume: string
  generation: Bigint
  created_at: Bigint
  claimed_at: Bigint | null
}

/**
 * System prompts, tools and wire options of requests, under their digest. Written by the previous
 * version; unused, and removed with the people whose instructions they contain.
 */
interface RequestFramesTable {
  hash: string
  json: string
}

/** One row per model answer. */
interface UsageTable {
  id: string
  user_id: string
  session_id: string
  prompt_id: string
  model: string
  input: number
  output: number
  cached: number
  reasoning: number
  /** US dollars; null if no price was known. */
  cost: number | null
  /** Number of its calls. */
  calls: Generated<number>
  at: number
  /** From `people` at that time: ids as JSON; null: not known. */
  teams: string | null
}

/** One row per started prompt. */
interface RunsTable {
  id: string
  user_id: string
  session_id: string
  prompt_id: string
  started_at: ColumnType<number | string, number, number>
  /** Null while it runs. */
  ended_at: ColumnType<number | string | null, number | null, number>
  /** From `people` at the start: ids as JSON; null: not known. */
  teams: string | null
}

export interface UsageSumKey {
  user_id: string
  /** Ids as JSON, in the order of `people`; empty: not known. */
  teams: string
  /** Days since 1970. */
  day: number
}

interface UsageDaysTable extends UsageSumKey {
  model: string
  answers: number
  calls: number
  input: number
  output: number
  cached: number
  reasoning: number
  /** US dollars of the answers with known cost. */
  cost: number
  /** Answers of unknown cost. */
  unpriced: number
  /** Input of answers whose cached tokens are known. Null: from before this was recorded. */
  cached_of: number | null
}

interface ToolDaysTable extends UsageSumKey {
  tool: string
  calls: number
  failed: number
  run_ms: number
  wait_ms: number
  /** Bytes produced by its calls, including unstored ones. */
  output_bytes: number
}

export interface CountersTable {
  name: string
  value: ColumnType<number | string, number, number | string>
}

interface RulesTable {
  id: string
  user_id: string
  effect: string
  /** The rule's subject, as JSON. */
  match_json: string
  created_at: number
  expires_at: number | null
  /** The session that it ends with; null: none. */
  session_id: string | null
  /** The prompt of that session that it ends with; null: only the session. */
  prompt_id: string | null
}

interface SecretsTable {
  user_id: string
  name: string
  /** The sealing key. */
  key_id: string
  sealed: ColumnType<Uint8Array, Uint8Array, Uint8Array>
  updated_at: number
}

interface InstructionsTable {
  user_id: string
  /** Empty: none. */
  text: string
  /** Epoch milliseconds, of `text`. */
  updated_at: number
  /** JSON: last texts of instruction files in their workspace. Null: none. */
  files: string | null
}

interface PeopleTable {
  user_id: string
  /** Empty: not known. */
  email: string
  /** Null: not known, as for people of an older version. */
  role: string | null
  /** Ids as JSON; null: not known. */
  teams: string | null
}

interface RemovedPeopleTable {
  user_id: string
  /** Epoch milliseconds. */
  removed_at: number
}

interface AgentSettingsTable {
  /** `team:<id>` or `person:<id or address>`. */
  subject: string
  /** A team’s name; null: not known here. */
  name: string | null
  /** JSON. */
  settings: string
  /** From 1, grows with each change. */
  revision: number
  /**
   * JSON: members of a team of the configuration file, by id or address, until the accounts have
   * adopted it; null: adopted.
   */
  members: string | null
  updated_at: number
}

interface SharesTable {
  id: string
  session_id: string
  kind: 'person' | 'team'
  target_id: string
  access: ShareAccess
  mode: string
  /** 1: may answer approvals. */
  may_approve: number
  created_at: number
  created_by: string
  expires_at: number | null
}

interface SnapshotsTable {
  id: string
  session_id: string
  up_to: number
  /** The title at that time; null: none, or stored by an earlier version. */
  title: Generated<string | null>
  /** 1: includes outputs of calls. */
  outputs: number
  created_at: number
  created_by: string
  expires_at: number | null
}

interface NotificationsTable {
  /** Grows with every row, including pruned ones. */
  id: number
  at: number
  user_id: string
  kind: NotificationKind
  session_id: string
  /** The call of an approval, the prompt of an end, the comment of a mention. */
  ref: string
  /** The tool of an approval, the author of a mention or a share. */
  about: string | null
}

interface SearchTextsTable {
  /** The second of the text, and a number within it. */
  id: number
  session_id: string
  seq: number
  /** Index in `SEARCH_KINDS`. */
  kind: number
  ref: string
  /** Null: the agent. */
  author: string | null
}

interface ModelEndpointsTable {
  id: string
  /** JSON. */
  endpoint: string
  /** Members of its models that `splitAsking` takes out, as JSON. Null: none. */
  asking: string | null
  /** From 1, grows with each change. */
  revision: number
  /** Epoch milliseconds. */
  created_at: number
}

interface McpServersTable {
  id: string
  /** The owner: a user, or an id that no user has. */
  user_id: string
  /** JSON. */
  server: string
  /** From 1, grows with each change. */
  revision: number
  /** Epoch milliseconds. */
  created_at: number
}

/** One user's marks on one chat. */
interface ChatMarksTable {
  user_id: string
  session_id: string
  pinned: number
  archived: number
  project_id: string | null
  /** Epoch milliseconds up to which they have seen it; 0: nothing. */
  seen_at: number
}

interface ProjectsTable {
  id: string
  user_id: string
  name: string
  folder: string
  instructions: string
  mode: string | null
  model: string | null
}

interface RetentionTable {
  /** Always 1: there is one row. */
  id: number
  /** JSON. */
  days: string
  revision: number
  ran_at: number | null
  /** JSON: removed items by kind. */
  removed: string | null
}

interface PromptQueueTable {
  prompt_id: string
  user_id: string
  model: string
  /** Order of the rows. */
  joined: number
  /** Number of the user's last slot; 0: none. */
  served: number
}

interface ReplicasTable {
  id: string
  url: string
  /** PEM of its TLS listener. */
  certificate: string | null
  version: string
  started_at: number
  heartbeat_at: number
  /** 1: it accepts no new users. */
  draining: number
  /** Id of the engine of its sandboxes. Null: not known. */
  engine: string | null
}

interface OwnersTable {
  user_id: string
  /** Null: released. */
  replica_id: string | null
  /** Grows with each change of `replica_id`. */
  epoch: number
}

export interface ChangesTable {
  /** In the order of the commits. */
  seq: number
  what: string
  id: string | null
}

export interface SessionsSchema {
  sessions: SessionsTable
  events: EventsTable
  outputs: OutputsTable
  output_chunks: OutputChunksTable
  approvals: ApprovalsTable
  submissions: SubmissionsTable
  usage: UsageTable
  runs: RunsTable
  usage_days: UsageDaysTable
  tool_days: ToolDaysTable
  outcomes: OutcomesTable
  sandbox_slots: SandboxSlotsTable
  counters: CountersTable
  request_frames: RequestFramesTable
  rules: RulesTable
  secrets: SecretsTable
  instructions: InstructionsTable
  people: PeopleTable
  removed_people: RemovedPeopleTable
  agent_settings: AgentSettingsTable
  shares: SharesTable
  snapshots: SnapshotsTable
  notices: NotificationsTable
  search_texts: SearchTextsTable
  model_endpoints: ModelEndpointsTable
  mcp_servers: McpServersTable
  chat_marks: ChatMarksTable
  projects: ProjectsTable
  retention: RetentionTable
  line: PromptQueueTable
  replicas: ReplicasTable
  owners: OwnersTable
  changes: ChangesTable
}
