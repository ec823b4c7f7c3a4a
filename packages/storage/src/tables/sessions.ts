/**
 * The tables of the sessions store. Portable to PostgreSQL: text ids, epoch-ms bigints, JSON as
 * text that is checked by zod when it is read, no booleans, enums or arrays.
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
  /** Grows with every agent that takes the session over; only the last one may write. */
  owner_epoch: number
  /** Bytes of its events and of its stored outputs. */
  stored_bytes: Generated<number>
  /** Number of the last event that the search index has. */
  indexed_seq: Generated<number>
  /** Why its last prompt ended, and when; null: none has, or before this was known. */
  ended_reason: Generated<string | null>
  ended_at: Generated<number | null>
  /** Up to here retention has removed the images. */
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
  /** Why something of it was not stored, and no later part will be; null: nothing is missing. */
  cut: NoRoom | 'retention' | null
}

interface OutputChunksTable {
  session_id: string
  call_id: string
  /** Where in the output the chunk begins. Chunks follow one another without a hole. */
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
  /** With whom it counts. As the other two: null of those from before this was known. */
  user_id: string | null
  /** Epoch milliseconds. */
  at: number | null
  /** What the call produced, also what was not stored; null as well where it had no output. */
  output_bytes: number | null
}

/** PostgreSQL’s client reads it as text, so what is reckoned from one may be text too. */
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
 * System prompts, tools and wire options of requests, under their digest. Written by the version
 * before; read by nothing, and removed with the people whose instructions are in them.
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
  /** US dollars; null where no price was known. */
  cost: number | null
  /** Calls that it made. */
  calls: Generated<number>
  at: number
  /** As of `people` at the time: ids as JSON; null: not known. */
  teams: string | null
}

/** One row per prompt that began. */
interface RunsTable {
  id: string
  user_id: string
  session_id: string
  prompt_id: string
  started_at: ColumnType<number | string, number, number>
  /** Null while it runs. */
  ended_at: ColumnType<number | string | null, number | null, number>
  /** As of `people` when it began: ids as JSON; null: not known. */
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
  /** US dollars of the answers of which they are known. */
  cost: number
  /** Answers of unknown cost. */
  unpriced: number
}

interface ToolDaysTable extends UsageSumKey {
  tool: string
  calls: number
  failed: number
  run_ms: number
  wait_ms: number
  /** Bytes that its calls produced, also those that were not stored. */
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
  /** What the rule is about, as JSON. */
  match_json: string
  created_at: number
  expires_at: number | null
  /** The session with which it is over; null: none. */
  session_id: string | null
  /** The prompt of that session with which it is over; null: not before the session. */
  prompt_id: string | null
}

interface SecretsTable {
  user_id: string
  name: string
  /** Which key it was sealed with. */
  key_id: string
  sealed: ColumnType<Uint8Array, Uint8Array, Uint8Array>
  updated_at: number
}

interface InstructionsTable {
  user_id: string
  text: string
  /** Epoch milliseconds. */
  updated_at: number
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
  /** Of a team; null: not known here. */
  name: string | null
  /** JSON. */
  settings: string
  /** From 1, grows with each change. */
  revision: number
  /**
   * JSON: who is in a team of the configuration file, by id or address, until the accounts have
   * adopted it; null: the accounts say.
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
  /** 1: answers approvals. */
  may_approve: number
  created_at: number
  created_by: string
  expires_at: number | null
}

interface SnapshotsTable {
  id: string
  session_id: string
  up_to: number
  /** 1: with what calls printed. */
  outputs: number
  created_at: number
  created_by: string
  expires_at: number | null
}

interface NotificationsTable {
  /** Grows with every row, also over those that were pruned. */
  id: number
  at: number
  user_id: string
  kind: NotificationKind
  session_id: string
  /** Of an approval its call, of an end its prompt, of a mention its comment. */
  ref: string
  /** Of an approval the tool's name, of a mention or a share who did it. */
  about: string | null
}

interface SearchTextsTable {
  /** The second it was written in, and a number within that. */
  id: number
  session_id: string
  seq: number
  /** Place in `SEARCH_KINDS`. */
  kind: number
  ref: string
  /** Null: the agent. */
  author: string | null
}

interface ModelEndpointsTable {
  id: string
  /** JSON. */
  endpoint: string
  /** From 1, grows with each change. */
  revision: number
  /** Epoch milliseconds. */
  created_at: number
}

interface McpServersTable {
  id: string
  /** Whose it is: a person, or an id that no person has. */
  user_id: string
  /** JSON. */
  server: string
  /** From 1, grows with each change. */
  revision: number
  /** Epoch milliseconds. */
  created_at: number
}

/** One person's, of one chat. */
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
  /** JSON: how many went of each kind. */
  removed: string | null
}

interface PromptQueueTable {
  prompt_id: string
  user_id: string
  model: string
  /** Orders the rows. */
  joined: number
  /** The number of the user's last turn; 0: none. */
  served: number
}

interface ReplicasTable {
  id: string
  url: string
  /** Of its TLS listener, in PEM. */
  certificate: string | null
  version: string
  started_at: number
  heartbeat_at: number
  /** 1: it takes no new people. */
  draining: number
  /** Id of the engine that has its sandboxes. Null: not known. */
  engine: string | null
}

interface OwnersTable {
  user_id: string
  /** Null: given up. */
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
