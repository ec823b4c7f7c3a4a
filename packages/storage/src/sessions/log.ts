/** The logs of sessions. A settled event and its effects are one transaction. */
import { SandlotError } from '@sandlot/shared/base/errors'
import { isLive, metaOf } from '@sandlot/shared/chat/events'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import type { Kysely, Transaction } from 'kysely'
import { applyEffects, sessionChanges } from './effects.ts'
import { toEvent, withSeq } from '../tables/rows.ts'
import type { GroupCommit } from '../database/group-commit.ts'
import { notOwner } from '../storage-error.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { indexEvents } from '../search/index-texts.ts'
import type { Fence } from '../replicas/replicas.ts'
import type { StoreRoom } from './store-room.ts'
import type { Effects } from '../tables/records.ts'

/** SQLite allows 32,766 values in a statement; an event has four. */
const EVENTS_PER_INSERT = 1_000
/** Events per read: a longer page would block the thread. */
const EVENTS_PER_PAGE = 200

export interface LogReads {
  /** Settled events with `seq > after`, in order. */
  read(sessionId: string, after?: number, limit?: number): Promise<SessionEvent[]>
}

/** A taken-over session: its log, which no other writer can change, and the epoch for writes. */
export interface Ownership {
  epoch: number
  events: SessionEvent[]
}

export interface LogRows extends LogReads {
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
  /** The prompt that this user submitted under this request id, if any. */
  findSubmission(
    userId: string,
    requestId: string,
  ): Promise<{ sessionId: string; promptId: string } | undefined>
}

export function logReads(db: Kysely<SessionsSchema>): LogReads {
  return { read: (sessionId, after = 0, limit) => readEvents(db, sessionId, { after, limit }) }
}

export function storedLog(
  db: Kysely<SessionsSchema>,
  commits: GroupCommit<SessionsSchema>,
  room: StoreRoom,
  fence: Fence,
): LogRows {
  return {
    ...logReads(db),

    takeOver: (...args) => takeOver(db, commits, fence, ...args),

    checkOwner: (...args) => checkOwner(db, fence, ...args),

    async append(sessionId, events, effects = {}, epoch, after) {
      const live = events.find(isLive)
      if (live !== undefined) throw new TypeError(`A live ${live.sessionUpdate} cannot be stored.`)
      const appended = await commits.run((trx) =>
        appendAll(trx, sessionId, events, effects, epoch, fence, after),
      )
      room.stored(appended.userId, appended.bytes)
      return appended.events
    },

    async findSubmission(userId, requestId) {
      const row = await db
        .selectFrom('submissions')
        .select(['session_id', 'prompt_id'])
        .where('user_id', '=', userId)
        .where('request_id', '=', requestId)
        .executeTakeFirst()
      return row === undefined ? undefined : { sessionId: row.session_id, promptId: row.prompt_id }
    },
  }
}

async function takeOver(
  db: Kysely<SessionsSchema>,
  commits: GroupCommit<SessionsSchema>,
  fence: Fence,
  ...[sessionId]: Parameters<LogRows['takeOver']>
): ReturnType<LogRows['takeOver']> {
  const row = await commits.run(async (trx) => {
    const taken = await trx
      .updateTable('sessions')
      .set((query) => ({ owner_epoch: query('owner_epoch', '+', 1) }))
      .where('id', '=', sessionId)
      .returning(['owner_epoch', 'last_seq', 'user_id'])
      .$if(fence.replica !== undefined, (query) => query.returning(fence.ownerEpoch('locked').as('owned')))
      .executeTakeFirst()
    if (taken !== undefined && !fence.admits(taken.user_id, taken.owned)) throw notOwner(sessionId)
    return taken
  })
  if (row === undefined) throw noSession(sessionId)
  // Outside the transaction, which all other writes would wait for: nothing up to this number
  // can change.
  return { epoch: row.owner_epoch, events: await readEvents(db, sessionId, { upTo: row.last_seq }) }
}

async function checkOwner(
  db: Kysely<SessionsSchema>,
  fence: Fence,
  ...[sessionId, epoch]: Parameters<LogRows['checkOwner']>
): ReturnType<LogRows['checkOwner']> {
  const row = await db
    .selectFrom('sessions')
    .select(['owner_epoch', 'user_id'])
    .$if(fence.replica !== undefined, (query) => query.select(fence.ownerEpoch('read').as('owned')))
    .where('id', '=', sessionId)
    .executeTakeFirst()
  if (row === undefined) throw noSession(sessionId)
  if (row.owner_epoch !== epoch || !fence.admits(row.user_id, row.owned)) throw notOwner(sessionId)
}

interface EventRange {
  after?: number
  /** Number of the last requested event. */
  upTo?: number
  limit?: number | undefined
}

/** In pages, with pauses for other work: parsing the log of a long session takes a second. */
async function readEvents(
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

function noSession(sessionId: string): SandlotError {
  return new SandlotError('not_found', `There is no session ${sessionId}.`)
}

export async function appendAll(
  trx: Transaction<SessionsSchema>,
  sessionId: string,
  events: readonly SessionEvent[],
  effects: Effects,
  epoch: number | undefined,
  fence: Fence,
  after?: number,
): Promise<{ events: SessionEvent[]; userId: string; bytes: number }> {
  const latest = events.reduce((at, event) => Math.max(at, metaOf(event).at), 0)
  const isFenced = epoch !== undefined && fence.replica !== undefined
  // The update comes first: it reserves the numbers, and on PostgreSQL it locks the row against
  // other writers.
  const session = await trx
    .updateTable('sessions')
    .set((query) => ({
      last_seq: query('last_seq', '+', events.length),
      updated_at: query
        .case()
        .when('updated_at', '<', latest)
        .then(latest)
        .else(query.ref('updated_at'))
        .end(),
      ...sessionChanges(effects),
    }))
    .where('id', '=', sessionId)
    .$if(epoch !== undefined, (query) => query.where('owner_epoch', '=', epoch ?? 0))
    .$if(after !== undefined, (query) => query.where('last_seq', '=', after ?? 0))
    .returning(['user_id', 'last_seq', 'indexed_seq'])
    .$if(isFenced, (query) => query.returning(fence.ownerEpoch('locked').as('owned')))
    .executeTakeFirst()
  if (session === undefined) {
    const row = await trx.selectFrom('sessions').select('id').where('id', '=', sessionId).executeTakeFirst()
    throw row === undefined ? noSession(sessionId) : notOwner(sessionId)
  }
  if (isFenced && !fence.admits(session.user_id, session.owned)) throw notOwner(sessionId)

  const first = session.last_seq - events.length + 1
  const numbered = events.map((event, index) => withSeq(event, first + index))
  const rows = numbered.map((event, index) => ({
    session_id: sessionId,
    seq: first + index,
    at: metaOf(event).at,
    json: JSON.stringify(event),
  }))
  for (let from = 0; from < rows.length; from += EVENTS_PER_INSERT) {
    await trx
      .insertInto('events')
      .values(rows.slice(from, from + EVENTS_PER_INSERT))
      .execute()
  }
  const bytes = rows.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0)
  // Otherwise earlier events are indexed first, later.
  const inOrder = session.indexed_seq === first - 1
  if (inOrder) await indexEvents(trx, { id: sessionId, userId: session.user_id }, numbered)
  if (bytes > 0) await addStoredBytes(trx, sessionId, bytes, inOrder ? session.last_seq : session.indexed_seq)
  await applyEffects(trx, { id: sessionId, userId: session.user_id }, effects, latest)
  return { events: numbered, userId: session.user_id, bytes }
}

async function addStoredBytes(
  trx: Transaction<SessionsSchema>,
  sessionId: string,
  bytes: number,
  indexed: number,
): Promise<void> {
  await trx
    .updateTable('sessions')
    .set((query) => ({ stored_bytes: query('stored_bytes', '+', bytes), indexed_seq: indexed }))
    .where('id', '=', sessionId)
    .execute()
}
