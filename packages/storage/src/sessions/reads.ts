/** The reads of the sessions store, the same for the writer and for read-only processes. */
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { auditReads } from '../audit/audit.ts'
import { readNotifications } from '../shares/notifications.ts'
import { type ExpressionBuilder, type Kysely, sql } from 'kysely'
import { MAX_CHUNK_BYTES } from './output-writer.ts'
import { storedLedger } from '../replicas/ledger.ts'
import { NO_USER, toEvent, toOutputRow, toSessionRow } from '../tables/rows.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { chatReads, matchesMarks } from '../shares/chats.ts'
import { replicaReads } from '../replicas/replicas.ts'
import { retentionReads } from '../retention/retention.ts'
import { searchTexts } from '../search/search.ts'
import { type ReaderOf, shareReads } from '../shares/shares.ts'
import type { SessionReader } from './store.ts'
import { usageReads } from '../usage/usage-sums.ts'
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'

const PAGE = 50
/** Events per read: a longer page would block the thread. */
const EVENTS_PER_PAGE = 200

export function sessionReads(db: Kysely<SessionsSchema>): Omit<SessionReader, 'close'> {
  return {
    async getSession(id) {
      const row = await sessionRows(db).where('id', '=', id).executeTakeFirst()
      return row === undefined ? undefined : toSessionRow(row)
    },

    ledger: { list: () => storedLedger(db).list() },
    shares: shareReads(db),
    audit: auditReads(db, 'agent'),
    retention: retentionReads(db),
    chats: chatReads(db),
    usage: usageReads(db),
    replicas: replicaReads(db),

    search: (who, query) => searchTexts(db, who, query),

    listSessions: (...args) => listSessions(db, ...args),

    readEvents: (sessionId, after = 0, limit) => readEvents(db, sessionId, { after, limit }),

    async outputsOf(sessionId) {
      const rows = await db
        .selectFrom('outputs')
        .selectAll()
        .where('session_id', '=', sessionId)
        .orderBy('call_id')
        .execute()
      return rows.map(toOutputRow)
    },

    async outputInfo(sessionId, callId) {
      const row = await db
        .selectFrom('outputs')
        .selectAll()
        .where('session_id', '=', sessionId)
        .where('call_id', '=', callId)
        .executeTakeFirst()
      return row === undefined ? undefined : toOutputRow(row)
    },

    notificationsAfter: (id, limit) => readNotifications(db, id, limit),

    readOutput: (...args) => readOutput(db, ...args),
  }
}

type SessionsWhere = ExpressionBuilder<SessionsSchema, 'sessions'>

function ownedBy(userId: string) {
  return (query: SessionsWhere) => query('user_id', '=', userId)
}

async function listSessions(
  db: Kysely<SessionsSchema>,
  ...[who, page = {}]: Parameters<SessionReader['listSessions']>
): ReturnType<SessionReader['listSessions']> {
  const limit = page.limit ?? PAGE
  const { before, cwd, title, marks, waiting = false } = page
  const userId = typeof who === 'string' ? who : who.id
  // One condition for both would scan the chats of all users.
  const parts = typeof who === 'string' ? [ownedBy(who)] : [ownedBy(who.id), sharedWith(who, Date.now())]
  const wanted = parts.map((part) =>
    sessionRows(db)
      .where(part)
      .$if(cwd !== undefined, (query) => query.where('cwd', '=', cwd ?? ''))
      .$if(marks !== undefined, (query) => query.where(matchesMarks(userId, marks ?? {})))
      .$if(title !== undefined, (query) => query.where(titleHas(title ?? '')))
      .$if(waiting, (query) => query.where(hasWaiting)),
  )
  const pages = await Promise.all(
    wanted.map((query) =>
      query
        .$if(before !== undefined, (older) => older.where('updated_at', '<', before ?? 0))
        .orderBy('updated_at', 'desc')
        .orderBy('id')
        .limit(limit)
        .execute(),
    ),
  )
  const rows = pages
    .flat()
    .toSorted((a, b) => b.updated_at - a.updated_at)
    .slice(0, limit)
  const last = rows.at(-1)
  if (last === undefined || rows.length < limit) return rows.map(toSessionRow)
  // The cursor is a time: rows of the same millisecond stay on one page, or the next page would
  // miss some.
  const known = new Set(rows.map(({ id }) => id))
  const ties = await Promise.all(
    wanted.map((query) => query.where('updated_at', '=', last.updated_at).orderBy('id').execute()),
  )
  return [...rows, ...ties.flat().filter(({ id }) => !known.has(id))].map(toSessionRow)
}

async function readOutput(
  db: Kysely<SessionsSchema>,
  ...[sessionId, callId, from, to]: Parameters<SessionReader['readOutput']>
): ReturnType<SessionReader['readOutput']> {
  // A reader of a long output requests piece after piece, and would otherwise block the process
  // throughout.
  await pauseWhenDue()
  const rows = await db
    .selectFrom('output_chunks')
    .select(['start_at', 'bytes'])
    .where('session_id', '=', sessionId)
    .where('call_id', '=', callId)
    // The chunk that contains `from` begins at most one chunk before it.
    .where('start_at', '>', from - MAX_CHUNK_BYTES)
    .where('start_at', '<', to)
    .orderBy('start_at')
    .execute()
  const parts = rows.map((row) =>
    row.bytes.subarray(Math.max(0, from - row.start_at), Math.max(0, to - row.start_at)),
  )
  const [first, ...others] = parts
  // A piece of one chunk need not be copied.
  const { buffer, byteOffset, length } =
    first !== undefined && others.length === 0 ? first : Buffer.concat(parts)
  return new Uint8Array(buffer, byteOffset, length)
}

/** Others' chats that are shared with them or their teams. */
function sharedWith({ id, teams = [] }: ReaderOf, now: number) {
  return (query: SessionsWhere) =>
    query.and([
      query('user_id', '!=', id),
      query(
        'id',
        'in',
        query
          .selectFrom('shares')
          .select('session_id')
          .where((share) => share.or([share('expires_at', 'is', null), share('expires_at', '>', now)]))
          .where((share) =>
            share.or([
              share.and([share('kind', '=', 'person'), share('target_id', '=', id)]),
              ...(teams.length === 0
                ? []
                : [share.and([share('kind', '=', 'team'), share('target_id', 'in', teams)])]),
            ]),
          ),
      ),
    ])
}

/** With a pending approval. */
function hasWaiting(query: SessionsWhere) {
  return query.exists(
    query
      .selectFrom('approvals')
      .select('approvals.tool_call_id')
      .whereRef('approvals.session_id', '=', 'sessions.id')
      .where('approvals.answered_at', 'is', null),
  )
}

/** Escapes characters that are syntax in a pattern. */
function titleHas(text: string) {
  const pattern = `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
  return sql<boolean>`lower(title) like lower(${pattern}) escape '\\'`
}

interface EventRange {
  after?: number
  /** Number of the last requested event. */
  upTo?: number
  limit?: number | undefined
}

/** In pages, with pauses for other work: parsing the log of a long session takes a second. */
export async function readEvents(
  db: Kysely<SessionsSchema>,
  sessionId: string,
  { after = 0, upTo = Number.MAX_SAFE_INTEGER, limit = Infinity }: EventRange,
): Promise<SessionEvent[]> {
  const events: SessionEvent[] = []
  for (let last = after; events.length < limit;) {
    const wanted = Math.min(EVENTS_PER_PAGE, limit - events.length)
    const rows = await db
      .selectFrom('events')
      .select(['seq', 'json'])
      .where('session_id', '=', sessionId)
      .where('seq', '>', last)
      .where('seq', '<=', upTo)
      .orderBy('seq')
      .limit(wanted)
      .execute()
    for (const row of rows) {
      events.push(toEvent(sessionId, row))
      last = row.seq
      await pauseWhenDue()
    }
    if (rows.length < wanted) break
  }
  return events
}

/** Sessions with the number of pending approvals, without unfinished copies. */
export function sessionRows(db: Kysely<SessionsSchema>) {
  return db
    .selectFrom('sessions')
    .selectAll('sessions')
    .where('user_id', '!=', NO_USER)
    .select((query) =>
      query
        .selectFrom('approvals')
        .select((count) => count.fn.countAll<number>().as('waiting'))
        .whereRef('approvals.session_id', '=', 'sessions.id')
        .where('approvals.answered_at', 'is', null)
        .as('waiting'),
    )
}
