/** The writes of the sessions store. */
import { SandlotError } from '@sandlot/shared/base/errors'
import { isLive, metaOf } from '@sandlot/shared/chat/events'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { Kysely, Transaction } from 'kysely'
import { applyEffects, sessionChanges } from './effects.ts'
import { addToProject } from '../shares/chats.ts'
import { forkSession } from './fork.ts'
import { readEvents, sessionRows } from './reads.ts'
import { removeSession } from './remove.ts'
import { toApprovalRow, toSessionRow, withSeq } from '../tables/rows.ts'
import type { GroupCommit } from '../database/group-commit.ts'
import { notOwner } from '../storage-error.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { indexEvents } from '../search/index-texts.ts'
import type { Fence } from '../replicas/replicas.ts'
import type { StoreRoom } from './store-room.ts'
import { spentSince, spentTogether } from '../usage/usage.ts'
import { dayOf } from '../usage/usage-sums.ts'
import type { SessionReader, SessionStore } from './store.ts'
import type { Effects } from '../tables/records.ts'

/** SQLite allows 32,766 values in a statement; an event has four. */
const EVENTS_PER_INSERT = 1_000

type Writes = Omit<
  SessionStore,
  | keyof SessionReader
  | 'ledger'
  | 'rules'
  | 'secrets'
  | 'instructions'
  | 'people'
  | 'audit'
  | 'retention'
  | 'shares'
  | 'chats'
  | 'agentSettings'
  | 'modelEndpoints'
  | 'promptQueue'
  | 'mcpServers'
  | 'replicas'
  | 'appendOutput'
  | 'problem'
>

export function sessionWrites(
  db: Kysely<SessionsSchema>,
  commits: GroupCommit<SessionsSchema>,
  room: StoreRoom,
  fence: Fence,
): Writes {
  return {
    createSession: (...args) => createSession(commits, fence, ...args),

    missingRoom: (userId, bytes) => room.missing(userId, bytes),

    async forkSession(sourceId, fork, events) {
      const row = await forkSession({ db, commits, room }, sourceId, fork, events)
      room.changed(fork.userId)
      return row
    },

    async deleteSession(id, audit) {
      const userId = await removeSession(commits, id, audit)
      if (userId !== undefined) room.changed(userId)
    },

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

    unfinished: (...args) => unfinished(db, ...args),

    spentSince: (userId, at, now) => spentSince(db, userId, at, now),
    spentTogether: (of, at, now) => spentTogether(db, of, dayOf(at), now),

    asksSince: (...args) => asksSince(db, ...args),

    approval: (...args) => findApproval(db, ...args),
  }
}

async function createSession(
  commits: GroupCommit<SessionsSchema>,
  fence: Fence,
  ...[{ id, userId, cwd, mode, at, project }, events = []]: Parameters<SessionStore['createSession']>
): ReturnType<SessionStore['createSession']> {
  const created = await commits.run(async (trx) => {
    const made = await trx
      .insertInto('sessions')
      .values({
        id,
        user_id: userId,
        cwd,
        title: null,
        mode,
        created_at: at,
        updated_at: at,
        last_seq: 0,
        running_prompt_id: null,
        owner_epoch: 1,
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returningAll()
      .$if(fence.replica !== undefined, (query) => query.returning(fence.ownerEpoch('locked').as('owned')))
      .executeTakeFirst()
    if (made === undefined) return undefined
    const appended =
      events.length > 0 ? await appendAll(trx, id, events, {}, undefined, fence) : { events: [] }
    if (project !== undefined) await addToProject(trx, userId, id, project)
    return { made, events: appended.events }
  })
  if (created === undefined) throw new SandlotError('conflict', `There is a session ${id} already.`)
  const updated_at = events.reduce((latest, event) => Math.max(latest, metaOf(event).at), at)
  const { owned, ...made } = created.made
  const row = toSessionRow({ ...made, last_seq: events.length, updated_at, waiting: 0 })
  const isOwned = fence.admits(userId, owned)
  return isOwned ? { ...row, owned: { epoch: made.owner_epoch, events: created.events } } : row
}

async function takeOver(
  db: Kysely<SessionsSchema>,
  commits: GroupCommit<SessionsSchema>,
  fence: Fence,
  ...[sessionId]: Parameters<SessionStore['takeOver']>
): ReturnType<SessionStore['takeOver']> {
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
  ...[sessionId, epoch]: Parameters<SessionStore['checkOwner']>
): ReturnType<SessionStore['checkOwner']> {
  const row = await db
    .selectFrom('sessions')
    .select(['owner_epoch', 'user_id'])
    .$if(fence.replica !== undefined, (query) => query.select(fence.ownerEpoch('read').as('owned')))
    .where('id', '=', sessionId)
    .executeTakeFirst()
  if (row === undefined) throw noSession(sessionId)
  if (row.owner_epoch !== epoch || !fence.admits(row.user_id, row.owned)) throw notOwner(sessionId)
}

async function unfinished(
  db: Kysely<SessionsSchema>,
  ...[userIds]: Parameters<SessionStore['unfinished']>
): ReturnType<SessionStore['unfinished']> {
  const rows = await sessionRows(db)
    .where('running_prompt_id', 'is not', null)
    .$if(userIds !== undefined, (query) => query.where('user_id', 'in', [...(userIds ?? [])]))
    .orderBy('updated_at')
    .execute()
  return rows.map(toSessionRow)
}

async function findApproval(
  db: Kysely<SessionsSchema>,
  ...[sessionId, toolCallId]: Parameters<SessionStore['approval']>
): ReturnType<SessionStore['approval']> {
  const row = await db
    .selectFrom('approvals')
    .selectAll()
    .where('session_id', '=', sessionId)
    .where('tool_call_id', '=', toolCallId)
    .executeTakeFirst()
  return row === undefined ? undefined : toApprovalRow(row)
}

async function asksSince(
  db: Kysely<SessionsSchema>,
  ...[userId, at]: Parameters<SessionStore['asksSince']>
): ReturnType<SessionStore['asksSince']> {
  const rows = await db
    .selectFrom('approvals')
    .innerJoin('sessions', 'sessions.id', 'approvals.session_id')
    .select(['sessions.id', (query) => query.fn.countAll<number>().as('asks')])
    .where('sessions.user_id', '=', userId)
    .where('approvals.asked_at', '>=', at)
    .where((query) =>
      query.or([
        query('approvals.answered_by', 'is', null),
        query('approvals.answered_by', 'in', ['user', 'expiry']),
      ]),
    )
    .groupBy('sessions.id')
    .orderBy((query) => query.fn.max('approvals.asked_at'), 'desc')
    .orderBy('sessions.id')
    .execute()
  return rows.map(({ id, asks }) => ({ sessionId: id, asks }))
}

function noSession(sessionId: string): SandlotError {
  return new SandlotError('not_found', `There is no session ${sessionId}.`)
}

async function appendAll(
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
