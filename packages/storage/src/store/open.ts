/** Opens the sessions store. */
import type { Worker } from 'node:worker_threads'
import { auditReads, storedAudit } from '../audit/audit.ts'
import { dialectOf, isPostgres } from '../database/dialect.ts'
import { openStore, openStoreReader } from '../database/open.ts'
import { GroupCommit } from '../database/group-commit.ts'
import { KnownCommits } from '../database/known-commits.ts'
import { ledgerFailure, storedLedger } from '../replicas/ledger.ts'
import { OutputWriter } from '../sessions/output-writer.ts'
import { storedApprovals } from '../sessions/approvals.ts'
import { logReads, storedLog } from '../sessions/log.ts'
import { outputReads, storedOutputs } from '../sessions/outputs.ts'
import { sessionReads, storedSessions } from '../sessions/sessions.ts'
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
import { notificationReads } from '../shares/notifications.ts'
import { shareReads, storedShares } from '../shares/shares.ts'
import { spentReads } from '../usage/usage.ts'
import type { SessionReader, SessionStore } from '../sessions/store.ts'
import { chatReads, storedChats } from '../shares/chats.ts'
import { endThread, startThread, threadFile } from '../database/thread.ts'
import { SearchThread } from '../search/search-thread.ts'
import { LateIndexing } from '../search/late-indexing.ts'
import { usageReads } from '../usage/usage-sums.ts'
import type { FileMode } from '../database/sqlite-file.ts'
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
  const sessions = storedSessions(db, commits, room, fence)
  const shares = storedShares(db)
  return withTypedFailures(health, {
    sessions: {
      ...sessions,
      fork: async (...args) => {
        const row = await sessions.fork(...args)
        indexing.poke()
        return row
      },
    },
    log: storedLog(db, commits, room, fence),
    outputs: storedOutputs(db, output, room),
    approvals: storedApprovals(db),
    usage: { ...usageReads(db), ...spentReads(db) },
    shares: {
      ...shares,
      handOver: async (sessionId, to) => {
        await shares.handOver(sessionId, to)
        indexing.poke()
      },
    },
    chats: storedChats(db),
    notifications: notificationReads(db),
    people: {
      known: storedPeople(db, commits),
      rules: storedRules(db, options.leftOut),
      secrets: storedSecrets(db),
      instructions: storedInstructions(db),
      settings: storedAgentSettings(db),
      modelEndpoints: storedModelEndpoints(db),
      mcpServers: storedMcpServers(db),
    },
    admin: { audit: storedAudit(db, 'agent'), retention: storedRetention(db, commits) },
    replicas: storedReplicas(db, fence, where),
    ledger: withTypedFailures(health, storedLedger(db), ledgerFailure),
    promptQueue: storedPromptQueue(db),
    problem: async () => health.problem(),
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
    sessions: {
      ...sessionReads(db),
      ...(thread && { search: (who, query) => thread.search(who, query) }),
    },
    log: logReads(db),
    outputs: outputReads(db),
    usage: usageReads(db),
    shares: shareReads(db),
    chats: chatReads(db),
    notifications: notificationReads(db),
    admin: { audit: auditReads(db, 'agent'), retention: retentionReads(db) },
    replicas: replicaReads(db),
    ledger: withTypedFailures(health, { list: () => storedLedger(db).list() }, ledgerFailure),
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
