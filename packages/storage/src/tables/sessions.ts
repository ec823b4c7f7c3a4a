/**
 * The tables of the sessions store. Portable to PostgreSQL: text ids, epoch-ms bigints, JSON as
 * text that is checked by zod when it is read, no booleans, enums or arrays.
 */
import type { ColumnType, CreateTableBuilder, Generated, Kysely } from 'kysely'
import { sql } from 'kysely'
import { type CountersTable, addCounters } from '../database/counters.ts'
import type { Migrations } from '../database/database.ts'
import { dialectOf } from '../database/dialect.ts'
import { addCommits } from '../database/known-commits.ts'
import { type InstructionsTable, addInstructions } from '../people/instructions.ts'
import { type PromptQueueTable, addPromptQueue } from '../usage/prompt-queue.ts'
import { type McpServersTable, addMcpServers } from '../people/mcp-servers.ts'
import { type ModelEndpointsTable, addModelEndpoints } from '../people/model-endpoints.ts'
import { type NotificationsTable, addNotifications } from '../shares/notifications.ts'
import { type RulesTable, addRuleEnds, addRules } from '../sessions/rules.ts'
import { type SecretsTable, addSecrets } from '../people/secrets.ts'
import { type AgentSettingsTable, addAgentSettings } from '../people/agent-settings.ts'
import {
  type PeopleTable,
  type RemovedPeopleTable,
  addPeople,
  addRemovedPeople,
  addRolesOfPeople,
} from '../people/people.ts'
import type { SearchTextsTable } from '../search/table.ts'
import { addSearch } from '../search/word-index.ts'
import { addAudit } from '../audit/audit.ts'
import { type ChatMarksTable, type ProjectsTable, addChatMarks, addEnds } from '../shares/chats.ts'
import { type ChangesTable, addChanges } from '../database/changes.ts'
import { type OwnersTable, type ReplicasTable, addReplicaEngine, addReplicas } from '../replicas/replicas.ts'
import { type RetentionTable, addRetention } from '../retention/retention.ts'
import type { NoRoom } from '../sessions/store-room.ts'
import { type SharesTable, type SnapshotsTable, addShares } from '../shares/shares.ts'
import {
  type RunsTable,
  type UsageTable,
  addRunTeams,
  addRuns,
  addUsageCalls,
  addUsageCost,
} from '../usage/usage.ts'
import { type UsageSumsTables, addUsageSums, addWhoseUsage } from '../usage/usage-sums.ts'

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
 * What requests to the model had beside their messages, under its digest: one row for all that had
 * the same.
 */
interface RequestFramesTable {
  hash: string
  json: string
}

export interface SessionsSchema extends UsageSumsTables {
  sessions: SessionsTable
  events: EventsTable
  outputs: OutputsTable
  output_chunks: OutputChunksTable
  approvals: ApprovalsTable
  submissions: SubmissionsTable
  usage: UsageTable
  runs: RunsTable
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

export const sessionsMigrations: Migrations = {
  '001_sessions': { up: createTables },
  '002_session_owner': { up: addOwner },
  '003_rules': { up: addRules },
  '004_usage_cost': { up: addUsageCost },
  '005_request_frames': { up: addRequestFrames },
  '006_secrets': { up: addSecrets },
  '007_instructions': { up: addInstructions },
  '008_rule_ends': { up: addRuleEnds },
  '009_people': { up: addPeople },
  '010_removed_people': { up: addRemovedPeople },
  '011_usage_calls': { up: addUsageCalls },
  '012_runs': { up: addRuns },
  '013_stored_bytes': { up: addStoredBytes },
  '014_output_cut': { up: addOutputCut },
  '015_roles_of_people': { up: addRolesOfPeople },
  '016_agent_settings': { up: addAgentSettings },
  '018_shares': { up: addShares },
  '021_notices': { up: addNotifications },
  '023_search': { up: addSearch },
  '030_model_endpoints': { up: addModelEndpoints },
  '033_chat_marks': { up: addChatMarks },
  '034_ends': { up: addEnds },
  '035_whose_usage': { up: addWhoseUsage },
  '036_usage_sums': { up: addUsageSums },
  '038_line': { up: addPromptQueue },
  '039_audit': { up: addAudit },
  '041_retention': { up: addRetention },
  '042_mcp_servers': { up: addMcpServers },
  '043_replicas': { up: addReplicasAndChanges },
  '045_postgres': { up: forPostgres },
  '047_run_teams': { up: addRunTeams },
  '048_replica_engine': { up: addReplicaEngine },
}

async function addReplicasAndChanges(db: Kysely<unknown>): Promise<void> {
  await addReplicas(db)
  await addChanges(db)
}

async function createTables(db: Kysely<unknown>): Promise<void> {
  // SQLite stores a blob as a blob whatever the declared type, so PostgreSQL's name serves both.
  const binary = sql`bytea`
  const { schema } = db

  await schema
    .createTable('sessions')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('cwd', 'text', (column) => column.notNull())
    .addColumn('title', 'text')
    .addColumn('mode', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addColumn('last_seq', 'bigint', (column) => column.notNull())
    .addColumn('running_prompt_id', 'text')
    .execute()
  await schema
    .createIndex('sessions_by_user')
    .on('sessions')
    .columns(['user_id', 'updated_at desc', 'id'])
    .execute()
  await schema
    .createIndex('sessions_running')
    .on('sessions')
    .column('running_prompt_id')
    .where(sql.ref('running_prompt_id'), 'is not', null)
    .execute()

  await ofSession(schema.createTable('events'))
    .addColumn('seq', 'bigint', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('json', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('events_key', ['session_id', 'seq'])
    .execute()
  await ofSession(schema.createTable('outputs'))
    .addColumn('call_id', 'text', (column) => column.notNull())
    .addColumn('stored_bytes', 'bigint', (column) => column.notNull())
    .addColumn('total_bytes', 'bigint', (column) => column.notNull())
    .addColumn('lines', 'bigint', (column) => column.notNull())
    .addColumn('complete', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('outputs_key', ['session_id', 'call_id'])
    .execute()
  await ofSession(schema.createTable('output_chunks'))
    .addColumn('call_id', 'text', (column) => column.notNull())
    .addColumn('start_at', 'bigint', (column) => column.notNull())
    .addColumn('bytes', binary, (column) => column.notNull())
    .addPrimaryKeyConstraint('output_chunks_key', ['session_id', 'call_id', 'start_at'])
    .execute()
  await ofSession(schema.createTable('approvals'))
    .addColumn('tool_call_id', 'text', (column) => column.notNull())
    .addColumn('asked_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addColumn('answered_at', 'bigint')
    .addColumn('option_id', 'text')
    .addColumn('answered_by', 'text')
    .addPrimaryKeyConstraint('approvals_key', ['session_id', 'tool_call_id'])
    .execute()
  await ofSession(schema.createTable('submissions'))
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('request_id', 'text', (column) => column.notNull())
    .addColumn('prompt_id', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('submissions_key', ['user_id', 'request_id'])
    .execute()
  await ofSession(schema.createTable('outcomes'))
    .addColumn('call_id', 'text', (column) => column.notNull())
    .addColumn('tool', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addColumn('run_ms', 'bigint', (column) => column.notNull())
    .addColumn('wait_ms', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('outcomes_key', ['session_id', 'call_id'])
    .execute()
  await schema.createIndex('submissions_by_session').on('submissions').column('session_id').execute()

  await schema
    .createTable('usage')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('session_id', 'text', (column) => column.notNull())
    .addColumn('prompt_id', 'text', (column) => column.notNull())
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('input', 'bigint', (column) => column.notNull())
    .addColumn('output', 'bigint', (column) => column.notNull())
    .addColumn('cached', 'bigint', (column) => column.notNull())
    .addColumn('reasoning', 'bigint', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .execute()
  await schema.createIndex('usage_by_user').on('usage').columns(['user_id', 'at']).execute()

  await schema
    .createTable('sandbox_slots')
    .addColumn('slot', 'text', (column) => column.primaryKey())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('user_id', 'text', (column) => column.unique())
    .addColumn('uid', 'integer', (column) => column.notNull().unique())
    .addColumn('volume', 'text', (column) => column.notNull().unique())
    .addColumn('generation', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('claimed_at', 'bigint')
    .execute()
  await addCounters(db)
}

async function addOwner({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .alterTable('sessions')
    .addColumn('owner_epoch', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute()
}

async function addRequestFrames({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('request_frames')
    .addColumn('hash', 'text', (column) => column.primaryKey())
    .addColumn('json', 'text', (column) => column.notNull())
    .execute()
}

async function addStoredBytes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('sessions')
    .addColumn('stored_bytes', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute()
  await sql`
    update sessions set stored_bytes =
      (select coalesce(sum(octet_length(json)), 0) from events where session_id = sessions.id) +
      (select coalesce(sum(stored_bytes), 0) from outputs where session_id = sessions.id)
  `.execute(db)
}

async function addOutputCut(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('outputs').addColumn('cut', 'text').execute()
  // Why was not written down, and a budget is what ends first.
  await sql`update outputs set cut = 'budget' where complete = 0 and total_bytes > stored_bytes`.execute(db)
}

/** Compressing them again costs time, and a range is read without the rest only where it is not. */
async function forPostgres(db: Kysely<unknown>): Promise<void> {
  if (dialectOf(db) === 'sqlite') return
  await addCommits(db)
  await sql`alter table output_chunks alter column bytes set storage external`.execute(db)
}

/** Rows that go when their session goes. */
function ofSession<Table extends string>(
  table: CreateTableBuilder<Table>,
): CreateTableBuilder<Table, 'session_id'> {
  return table.addColumn('session_id', 'text', (column) =>
    column.notNull().references('sessions.id').onDelete('cascade'),
  )
}
