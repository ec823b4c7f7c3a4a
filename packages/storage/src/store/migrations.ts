/** Every migration of the sessions store, by the name that databases have recorded. */
import { type CreateTableBuilder, type Kysely, type RawBuilder, type SchemaModule, sql } from 'kysely'
import { addAudit } from '../audit/audit.ts'
import { addChanges } from '../database/changes.ts'
import { addCounters } from '../database/counters.ts'
import type { Migrations } from '../database/database.ts'
import { dialectOf } from '../database/dialect.ts'
import { addCommits } from '../database/known-commits.ts'
import { addAgentSettings } from '../people/agent-settings.ts'
import { addInstructionFiles, addInstructions } from '../people/instructions.ts'
import { addMcpServers } from '../people/mcp-servers.ts'
import { addModelAsking, addModelEndpoints } from '../people/model-endpoints.ts'
import { addPeople, addRemovedPeople, addRolesOfPeople } from '../people/people.ts'
import { addSecrets } from '../people/secrets.ts'
import { addReplicaEngine, addReplicas } from '../replicas/replicas.ts'
import { addRetention } from '../retention/retention.ts'
import { addSearch } from '../search/word-index.ts'
import { addRuleEnds, addRules } from '../sessions/rules.ts'
import { addChatMarks, addEnds } from '../shares/chats.ts'
import { addNotifications } from '../shares/notifications.ts'
import { addShares, addSnapshotTitles } from '../shares/shares.ts'
import { addPromptQueue } from '../usage/prompt-queue.ts'
import { addCachedOf, addUsageSums, addUsageOwners } from '../usage/usage-sums.ts'
import { addRunTeams, addRuns, addUsageCalls, addUsageCost } from '../usage/usage.ts'

export const sessionsMigrations: Migrations = {
  '001_sessions': createTables,
  '002_session_owner': addOwner,
  '003_rules': addRules,
  '004_usage_cost': addUsageCost,
  '005_request_frames': addRequestFrames,
  '006_secrets': addSecrets,
  '007_instructions': addInstructions,
  '008_rule_ends': addRuleEnds,
  '009_people': addPeople,
  '010_removed_people': addRemovedPeople,
  '011_usage_calls': addUsageCalls,
  '012_runs': addRuns,
  '013_stored_bytes': addStoredBytes,
  '014_output_cut': addOutputCut,
  '015_roles_of_people': addRolesOfPeople,
  '016_agent_settings': addAgentSettings,
  '018_shares': addShares,
  '021_notices': addNotifications,
  '023_search': addSearch,
  '030_model_endpoints': addModelEndpoints,
  '033_chat_marks': addChatMarks,
  '034_ends': addEnds,
  '035_whose_usage': addUsageOwners,
  '036_usage_sums': addUsageSums,
  '038_line': addPromptQueue,
  '039_audit': addAudit,
  '041_retention': addRetention,
  '042_mcp_servers': addMcpServers,
  '043_replicas': addReplicasAndChanges,
  '045_postgres': forPostgres,
  '047_run_teams': addRunTeams,
  '048_replica_engine': addReplicaEngine,
  '049_instruction_files': addInstructionFiles,
  '050_usage_cached_of': addCachedOf,
  '051_model_asking': addModelAsking,
  '052_snapshot_titles': addSnapshotTitles,
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
  await createCallTables(schema, binary)
  await createUsageTables(schema)
  await addCounters(db)
}

async function createCallTables(schema: SchemaModule, binary: RawBuilder<unknown>): Promise<void> {
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
}

async function createUsageTables(schema: SchemaModule): Promise<void> {
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
  // The reason was not recorded; the budget is the likely one.
  await sql`update outputs set cut = 'budget' where complete = 0 and total_bytes > stored_bytes`.execute(db)
}

/** Compressing outputs again costs time, and only uncompressed ones can be read by range. */
async function forPostgres(db: Kysely<unknown>): Promise<void> {
  if (dialectOf(db) === 'sqlite') return
  await addCommits(db)
  await sql`alter table output_chunks alter column bytes set storage external`.execute(db)
}

/** Rows that are deleted with their session. */
function ofSession<Table extends string>(
  table: CreateTableBuilder<Table>,
): CreateTableBuilder<Table, 'session_id'> {
  return table.addColumn('session_id', 'text', (column) =>
    column.notNull().references('sessions.id').onDelete('cascade'),
  )
}
