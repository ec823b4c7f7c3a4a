/** The sessions of users: their rows, without their logs. */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import { type SessionEvent, metaOf } from '@sandlot/shared/chat/events'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { SearchQuery } from '@sandlot/shared/search/search'
import { type ExpressionBuilder, type Kysely, sql } from 'kysely'
import { type MarksFilter, addToProject, matchesMarks } from '../shares/chats.ts'
import { forkSession } from './fork.ts'
import { type Ownership, appendAll } from './log.ts'
import { removeSession } from './remove.ts'
import { NO_USER, toSessionRow } from '../tables/rows.ts'
import type { GroupCommit } from '../database/group-commit.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { type FoundTexts, searchTexts } from '../search/search.ts'
import type { Fence } from '../replicas/replicas.ts'
import type { ReaderOf } from '../shares/shares.ts'
import type { StoreRoom } from './store-room.ts'
import type { ForkedSession, SessionRow } from '../tables/records.ts'

const PAGE = 50

export interface SessionReads {
  get(id: string): Promise<SessionRow | undefined>
  /**
   * Newest first: this user's, and, with their teams, those shared with them. `before`: the
   * `updatedAt` of the last row of the previous page.
   */
  list(
    who: string | ReaderOf,
    page?: {
      before?: number
      limit?: number
      /** Only with this folder. */
      cwd?: string
      /** Only with this text in the name, ignoring the case of A to Z. */
      title?: string
      /** True: only with a pending approval. */
      waiting?: boolean
      /** Only with these marks. */
      marks?: MarksFilter
    },
  ): Promise<SessionRow[]>
  /** Hits in the reader's own chats and in those shared with them. */
  search(who: ReaderOf, query: SearchQuery): Promise<FoundTexts>
}

/**
 * A new session. `owned`: by its creator, like after `LogRows.takeOver`; absent where the creator
 * may not write to it.
 */
export type CreatedSession = SessionRow & { owned?: Ownership }

export interface SessionRows extends SessionReads {
  /**
   * With these settled events, numbered from 1, in one transaction. `project`: the user's, which
   * contains it. Rejects with `conflict` if the id exists.
   */
  create(
    row: { id: string; userId: string; cwd: string; mode: Mode; at: number; project?: string },
    events?: readonly SessionEvent[],
  ): Promise<CreatedSession>
  /**
   * A new session with these events (numbered from 1) and copies of the outputs of their calls,
   * read from the source. It is visible when it is complete. Rejects with `conflict` if the id
   * exists, `not_found` if the source is removed, and `store_full` without room for it.
   */
  fork(sourceId: string, fork: ForkedSession, events: readonly SessionEvent[]): Promise<SessionRow>
  /** Removes its events, outputs and approvals too. Does nothing if there is none. */
  remove(id: string, audit?: NewAudit): Promise<void>
  /** Sessions with an unfinished prompt, for a restart to resume. `userIds`: only of these. */
  unfinished(userIds?: Iterable<string>): Promise<SessionRow[]>
}

export function sessionReads(db: Kysely<SessionsSchema>): SessionReads {
  return {
    async get(id) {
      const row = await sessionRows(db).where('id', '=', id).executeTakeFirst()
      return row === undefined ? undefined : toSessionRow(row)
    },
    list: (...args) => listSessions(db, ...args),
    search: (who, query) => searchTexts(db, who, query),
  }
}

export function storedSessions(
  db: Kysely<SessionsSchema>,
  commits: GroupCommit<SessionsSchema>,
  room: StoreRoom,
  fence: Fence,
): SessionRows {
  return {
    ...sessionReads(db),

    create: (...args) => createSession(commits, fence, ...args),

    async fork(sourceId, fork, events) {
      const row = await forkSession({ db, commits, room }, sourceId, fork, events)
      room.changed(fork.userId)
      return row
    },

    async remove(id, audit) {
      const userId = await removeSession(commits, id, audit)
      if (userId !== undefined) room.changed(userId)
    },

    unfinished: (...args) => unfinished(db, ...args),
  }
}

type SessionsWhere = ExpressionBuilder<SessionsSchema, 'sessions'>

function ownedBy(userId: string) {
  return (query: SessionsWhere) => query('user_id', '=', userId)
}

async function listSessions(
  db: Kysely<SessionsSchema>,
  ...[who, page = {}]: Parameters<SessionReads['list']>
): ReturnType<SessionReads['list']> {
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

async function createSession(
  commits: GroupCommit<SessionsSchema>,
  fence: Fence,
  ...[{ id, userId, cwd, mode, at, project }, events = []]: Parameters<SessionRows['create']>
): ReturnType<SessionRows['create']> {
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

async function unfinished(
  db: Kysely<SessionsSchema>,
  ...[userIds]: Parameters<SessionRows['unfinished']>
): ReturnType<SessionRows['unfinished']> {
  const rows = await sessionRows(db)
    .where('running_prompt_id', 'is not', null)
    .$if(userIds !== undefined, (query) => query.where('user_id', 'in', [...(userIds ?? [])]))
    .orderBy('updated_at')
    .execute()
  return rows.map(toSessionRow)
}

/** Sessions with the number of pending approvals, without unfinished copies. */
function sessionRows(db: Kysely<SessionsSchema>) {
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
