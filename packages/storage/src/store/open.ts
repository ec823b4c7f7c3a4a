/** Opens the sessions store. */
import type { Worker } from 'node:worker_threads'
import { auditReads, storedAudit } from '../audit/audit.ts'
import { dialectOf, isPostgres } from '../database/dialect.ts'
import { openStore, openStoreReader } from '../database/open.ts'
import { GroupCommit } from '../database/group-commit.ts'
import { KnownCommits } from '../database/known-commits.ts'
import { ledgerFailure, storedLedger } from '../replicas/ledger.ts'
import { OutputWriter } from '../sessions/output-writer.ts'
import { sessionReads } from '../sessions/reads.ts'
import { removeLeftOver } from '../sessions/remove.ts'
import { Fence, replicaReads, storedReplicas } from '../replicas/replicas.ts'
import { type RoomLimits, StoreRoom } from '../sessions/store-room.ts'
import { storedRules } from '../sessions/rules.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { sessionsMigrations } from './migrations.ts'
import { storedInstructions } from '../people/instructions.ts'
import { storedAgentSettings } from '../people/agent-settings.ts'
import { storedPromptQueue } from '../usage/prompt-queue.ts'
import { storedMcpServers } from '../people/mcp-servers.ts'
import { storedModelEndpoints } from '../people/model-endpoints.ts'
import { storedPeople } from '../people/people.ts'
import { retentionReads, storedRetention } from '../retention/retention.ts'
import { storedSecrets } from '../people/secrets.ts'
import { shareReads, storedShares } from '../shares/shares.ts'
import type { SessionReader, SessionStore } from '../sessions/store.ts'
import { chatReads, storedChats } from '../shares/chats.ts'
import { endThread, startThread, threadFile } from '../database/thread.ts'
import { SearchThread } from '../search/search-thread.ts'
import { LateIndexing } from '../search/late-indexing.ts'
import { usageReads } from '../usage/usage-sums.ts'
import { sessionWrites } from '../sessions/writes.ts'
import type { FileMode } from '../database/sqlite-file.ts'
import type { Health } from '../database/store-health.ts'
import type { StorageError } from '../storage-error.ts'
import { type Kysely, sql } from 'kysely'
import { withTypedFailures } from '../database/typed-failures.ts'

/**
 * Open it for its one writing process (ai-agent), creating and migrating it. `where`: path of a
 * file, or address of PostgreSQL. `leftOut`: see `storedRules`. `room`: limits of outputs, images
 * and copies; absent: none. `mode`: of the file (default 0600). Throws `StorageError`: cannot_open,
 * locked, newer_schema, migration_failed.
 */
export async function openSessionStore(
  where: string,
  options: { leftOut?: (why: StorageError) => void; room?: RoomLimits; mode?: FileMode } = {},
): Promise<SessionStore> {
  const database = await openStore<SessionsSchema>(where, 'sessions', sessionsMigrations, options.mode)
  const { db, health } = database
  const checkpoints = dialectOf(db) === 'sqlite' ? await startCheckpoints(db, where) : undefined
  const known = dialectOf(db) === 'sqlite' ? undefined : new KnownCommits(db, health)
  const commits = new GroupCommit<SessionsSchema>(
    db,
    () => checkpoints?.written(),
    known && ((work) => known.run(work)),
  )
  await removeLeftOver(db, commits)
  const room = new StoreRoom(db, options.room)
  const fence = new Fence()
  const output = new OutputWriter(commits, room, fence)
  const indexing = new LateIndexing(db, commits)
  indexing.poke()
  const writes = sessionWrites(db, commits, room, fence)
  const shares = storedShares(db)
  return withTypedFailures(health, {
    ...sessionReads(db),
    problem: async () => health.problem(),
    ...writes,
    forkSession: async (sourceId, fork, events) => {
      const row = await writes.forkSession(sourceId, fork, events)
      indexing.poke()
      return row
    },
    ledger: withTypedFailures(health, storedLedger(db), ledgerFailure),
    ...smallStores(db, commits, health),
    rules: withTypedFailures(health, storedRules(db, options.leftOut)),
    shares: withTypedFailures(health, {
      ...shares,
      handOver: async (sessionId, to) => {
        await shares.handOver(sessionId, to)
        indexing.poke()
      },
    }),
    replicas: withTypedFailures(health, storedReplicas(db, fence, where)),
    appendOutput: (sessionId, callId, offset, bytes, epoch) =>
      output.append(sessionId, callId, offset, bytes, epoch),
    close: async () => {
      known?.stopWaiting()
      await output.flush()
      await indexing.stop()
      await commits.idle()
      await known?.close()
      await checkpoints?.stop()
      await database.close()
    },
  })
}

function smallStores(db: Kysely<SessionsSchema>, commits: GroupCommit<SessionsSchema>, health: Health) {
  return {
    secrets: withTypedFailures(health, storedSecrets(db)),
    instructions: withTypedFailures(health, storedInstructions(db)),
    people: withTypedFailures(health, storedPeople(db, commits)),
    audit: withTypedFailures(health, storedAudit(db, 'agent')),
    retention: withTypedFailures(health, storedRetention(db, commits)),
    chats: withTypedFailures(health, storedChats(db)),
    agentSettings: withTypedFailures(health, storedAgentSettings(db)),
    modelEndpoints: withTypedFailures(health, storedModelEndpoints(db)),
    promptQueue: withTypedFailures(health, storedPromptQueue(db)),
    mcpServers: withTypedFailures(health, storedMcpServers(db)),
  }
}

/**
 * Open it read-only, waiting up to `waitMs` (30 s) for its writer to create and migrate it. Throws
 * `StorageError`: cannot_open, newer_schema, not_migrated; or the signal's reason.
 */
export async function openSessionReader(
  where: string,
  options: { waitMs?: number; signal?: AbortSignal } = {},
): Promise<SessionReader> {
  const database = await openStoreReader<SessionsSchema>(where, 'sessions', sessionsMigrations, options)
  const { db, health, close } = database
  const thread = isPostgres(where) ? undefined : new SearchThread(where, Object.keys(sessionsMigrations))
  return withTypedFailures(health, {
    ...sessionReads(db),
    ...(thread && { search: (who, query) => thread.search(who, query) }),
    shares: withTypedFailures(health, shareReads(db)),
    chats: withTypedFailures(health, chatReads(db)),
    usage: withTypedFailures(health, usageReads(db)),
    replicas: withTypedFailures(health, replicaReads(db)),
    ledger: withTypedFailures(health, { list: () => storedLedger(db).list() }, ledgerFailure),
    audit: withTypedFailures(health, auditReads(db, 'agent')),
    retention: withTypedFailures(health, retentionReads(db)),
    close: async () => {
      await thread?.close()
      await close()
    },
  })
}

/** Commits before the thread starts: a short use of a store does without. */
const FEW_COMMITS = 50
/**
 * Pages of the log (4 KiB each) after which a commit moves the rest itself, which lets SQLite start
 * the log again. SQLite's own number is 1,000.
 */
const MOST_PAGES = 8_000

/**
 * Checkpoints of the file at `path` on a thread, because each blocks as long as the disk needs.
 * `db`: its writer's connection. Call `written` after each commit. `stop` waits for a running one.
 */
async function startCheckpoints<Schema>(db: Kysely<Schema>, path: string) {
  await sql`pragma wal_autocheckpoint = ${sql.lit(MOST_PAGES)}`.execute(db)
  let commits = 0
  let worker: Worker | undefined
  return {
    written(): void {
      if (++commits !== FEW_COMMITS) return
      worker = startThread(threadFile('checkpoint-worker', import.meta.url), path)
      // It ended with a failed sync. The store's own next sync tells whether the disk is lost.
      worker.on('error', () => undefined).unref()
    },
    stop: async () => worker && endThread(worker),
  }
}
