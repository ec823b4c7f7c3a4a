/** Shares of chats, and links to snapshots of a chat. */
import { SandlotError } from '@sandlot/shared/base/errors'
import { MODES } from '@sandlot/shared/chat/mode'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Share, ShareAccess, Snapshot } from '@sandlot/shared/chat/shares'
import type { Kysely, Selectable } from 'kysely'
import { appendAudit, inTransaction } from '../audit/audit.ts'
import { insertNotifications } from './notifications.ts'
import type { SessionsSchema } from '../tables/sessions.ts'

/** Shares of one chat, and snapshots of one. */
const MOST_PER_CHAT = 200

/** The reader's id and teams. */
export interface ReaderOf {
  id: string
  teams?: readonly string[] | undefined
}

/** A user's access to another's chat. */
export interface SharedAccess {
  access: ShareAccess
  /** The highest mode of their messages. */
  mode: Mode
  mayApprove: boolean
  /** Epoch milliseconds of the first end of these shares; null: never. */
  expiresAt: number | null
}

/**
 * A reader's access by these shares now; undefined: none. Of several (a user's own, their teams')
 * the most generous value of each member wins.
 */
export function accessBy(
  shares: readonly Share[],
  { id, teams = [] }: ReaderOf,
  now: number,
): SharedAccess | undefined {
  const theirs = shares.filter(
    ({ kind, targetId, expiresAt }) =>
      (expiresAt === null || expiresAt > now) &&
      (kind === 'person' ? targetId === id : teams.includes(targetId)),
  )
  if (theirs.length === 0) return undefined
  const takingPart = theirs.filter(({ access }) => access === 'take_part')
  const ends = theirs.flatMap(({ expiresAt }) => (expiresAt === null ? [] : [expiresAt]))
  return {
    access: takingPart.length > 0 ? 'take_part' : 'watch',
    mode: MODES[Math.max(0, ...takingPart.map(({ mode }) => MODES.indexOf(mode)))] ?? 'manual',
    mayApprove: theirs.some(({ mayApprove }) => mayApprove),
    expiresAt: ends.length === 0 ? null : Math.min(...ends),
  }
}

/** Reads, also for the service. */
export interface ShareReads {
  /** One chat's, oldest first, including expired ones. */
  of(sessionId: string): Promise<Share[]>
  /** The same for several chats, by their ids; chats without shares are missing. */
  ofAll(sessionIds: readonly string[]): Promise<ReadonlyMap<string, Share[]>>
  snapshotsOf(sessionId: string): Promise<Snapshot[]>
  /**
   * Finds one by the secret of its link, including expired ones. `title`: that of the chat when it
   * was made, empty if it had none.
   */
  snapshot(id: string): Promise<(Snapshot & { title: string | null }) | undefined>
}

export interface ShareRows extends ShareReads {
  /**
   * Replaces one of the same user or team, keeping its id. `notify`: recipients of a notification
   * of a new one, and its author. Throws `not_found` (no such chat) and `conflict` (too many).
   */
  put(
    sessionId: string,
    share: Share,
    by: string,
    notify?: { userIds: readonly string[]; about: string },
    audit?: NewAudit,
  ): Promise<Share>
  /** The removed share; undefined: this chat has no such share. */
  remove(sessionId: string, id: string, audit?: NewAudit): Promise<Share | undefined>
  addSnapshot(snapshot: Snapshot, by: string, audit?: NewAudit): Promise<void>
  /** False when there was none. */
  removeSnapshot(sessionId: string, id: string, audit?: NewAudit): Promise<boolean>
  /** Ids of this user's chats with shares. */
  sharedOf(userId: string): Promise<string[]>
  /** Moves the chat and its contents to another user, whose own share ends. */
  handOver(sessionId: string, to: string): Promise<void>
}

export function shareReads(db: Kysely<SessionsSchema>): ShareReads {
  const ofAll: ShareReads['ofAll'] = async (sessionIds) => {
    const rows = await db
      .selectFrom('shares')
      .selectAll()
      .where('session_id', 'in', sessionIds)
      .orderBy('created_at')
      .orderBy('id')
      .execute()
    const bySession = Map.groupBy(rows, (row) => row.session_id)
    return new Map([...bySession].map(([sessionId, shares]) => [sessionId, shares.map(toShare)]))
  }
  return {
    of: async (sessionId) => (await ofAll([sessionId])).get(sessionId) ?? [],
    ofAll,
    async snapshotsOf(sessionId) {
      const rows = await db
        .selectFrom('snapshots')
        .selectAll()
        .where('session_id', '=', sessionId)
        .orderBy('created_at')
        .orderBy('id')
        .execute()
      return rows.map(toSnapshot)
    },
    async snapshot(id) {
      const row = await db.selectFrom('snapshots').selectAll().where('id', '=', id).executeTakeFirst()
      return row === undefined ? undefined : { ...toSnapshot(row), title: row.title }
    },
  }
}

export function storedShares(db: Kysely<SessionsSchema>): ShareRows {
  const reads = shareReads(db)
  return {
    ...reads,
    put: (...args) => putShare(db, ...args),
    remove: (sessionId, id, audit) =>
      db.transaction().execute(async (trx) => {
        const row = await trx
          .deleteFrom('shares')
          .where('session_id', '=', sessionId)
          .where('id', '=', id)
          .returningAll()
          .executeTakeFirst()
        if (row === undefined) return undefined
        const { kind, target_id: targetId } = row
        if (audit !== undefined) await appendAudit(trx, { ...audit, before: { kind, targetId } })
        return toShare(row)
      }),
    addSnapshot: (...args) => addSnapshot(db, ...args),
    removeSnapshot: (sessionId, id, audit) =>
      inTransaction(db, audit, async (trx) => {
        const removed = await trx
          .deleteFrom('snapshots')
          .where('session_id', '=', sessionId)
          .where('id', '=', id)
          .executeTakeFirst()
        return removed.numDeletedRows > 0n
      }),
    async sharedOf(userId) {
      const rows = await db
        .selectFrom('shares')
        .innerJoin('sessions', 'sessions.id', 'shares.session_id')
        .select('sessions.id')
        .distinct()
        .where('sessions.user_id', '=', userId)
        .execute()
      return rows.map(({ id }) => id)
    },
    handOver: (...args) => handOver(db, ...args),
  }
}

function putShare(
  db: Kysely<SessionsSchema>,
  ...[sessionId, share, by, notify, audit]: Parameters<ShareRows['put']>
): ReturnType<ShareRows['put']> {
  return inTransaction(db, audit, async (trx) => {
    const session = await trx
      .selectFrom('sessions')
      .select('id')
      .where('id', '=', sessionId)
      .executeTakeFirst()
    if (session === undefined) throw new SandlotError('not_found', 'There is no such chat.')
    const known = await shareReads(trx).of(sessionId)
    const before = known.find(({ kind, targetId }) => kind === share.kind && targetId === share.targetId)
    if (before === undefined && known.length >= MOST_PER_CHAT)
      throw new SandlotError('conflict', `A chat is shared with at most ${MOST_PER_CHAT} people and teams.`)
    const stored = {
      ...share,
      id: before?.id ?? share.id,
      createdAt: before?.createdAt ?? share.createdAt,
    }
    const terms = {
      access: stored.access,
      mode: stored.mode,
      may_approve: stored.mayApprove ? 1 : 0,
      expires_at: stored.expiresAt,
    }
    await trx
      .insertInto('shares')
      .values({
        id: stored.id,
        session_id: sessionId,
        kind: stored.kind,
        target_id: stored.targetId,
        ...terms,
        created_at: stored.createdAt,
        created_by: by,
      })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(terms))
      .execute()
    const recipients = before === undefined ? (notify?.userIds ?? []) : []
    const notifications = recipients.map(
      (userId) => ({ userId, kind: 'shared', ref: stored.id, about: notify?.about }) as const,
    )
    await insertNotifications(trx, sessionId, notifications, stored.createdAt)
    return stored
  })
}

async function addSnapshot(
  db: Kysely<SessionsSchema>,
  ...[{ id, sessionId, upTo, outputs, createdAt, expiresAt }, by, audit]: Parameters<ShareRows['addSnapshot']>
): ReturnType<ShareRows['addSnapshot']> {
  await inTransaction(db, audit, async (trx) => {
    const known = await shareReads(trx).snapshotsOf(sessionId)
    if (known.length >= MOST_PER_CHAT)
      throw new SandlotError('conflict', `A chat has at most ${MOST_PER_CHAT} snapshots. Remove one.`)
    await trx
      .insertInto('snapshots')
      .values((query) => ({
        id,
        session_id: sessionId,
        up_to: upTo,
        // No title at this time is an empty text; null is of a version that stored none.
        title: query
          .selectFrom('sessions')
          .select((of) => of.fn.coalesce('title', of.val('')).as('title'))
          .where('id', '=', sessionId),
        outputs: outputs ? 1 : 0,
        created_at: createdAt,
        created_by: by,
        expires_at: expiresAt,
      }))
      .execute()
  })
}

function handOver(
  db: Kysely<SessionsSchema>,
  ...[sessionId, to]: Parameters<ShareRows['handOver']>
): ReturnType<ShareRows['handOver']> {
  return db.transaction().execute(async (trx) => {
    await trx
      .updateTable('sessions')
      // Fences off a writer with the earlier epoch, like a take-over. The index entries carry
      // the earlier owner, so it is reindexed.
      .set((query) => ({ user_id: to, owner_epoch: query('owner_epoch', '+', 1), indexed_seq: 0 }))
      .where('id', '=', sessionId)
      .execute()
    await trx
      .deleteFrom('shares')
      .where('session_id', '=', sessionId)
      .where('kind', '=', 'person')
      .where('target_id', '=', to)
      .execute()
  })
}

function toShare(row: Selectable<SessionsSchema['shares']>): Share {
  return {
    id: row.id,
    kind: row.kind,
    targetId: row.target_id,
    access: row.access,
    mode: MODES.find((known) => known === row.mode) ?? 'manual',
    mayApprove: row.may_approve === 1,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}

function toSnapshot(row: Selectable<SessionsSchema['snapshots']>): Snapshot {
  const { id, session_id: sessionId, up_to: upTo, created_at: createdAt, expires_at: expiresAt } = row
  return { id, sessionId, upTo, outputs: row.outputs === 1, createdAt, expiresAt }
}

export async function addSnapshotTitles({ schema }: Kysely<unknown>): Promise<void> {
  await schema.alterTable('snapshots').addColumn('title', 'text').execute()
}

export async function addShares({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('shares')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('session_id', 'text', (column) =>
      column.notNull().references('sessions.id').onDelete('cascade'),
    )
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('target_id', 'text', (column) => column.notNull())
    .addColumn('access', 'text', (column) => column.notNull())
    .addColumn('mode', 'text', (column) => column.notNull())
    .addColumn('may_approve', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('created_by', 'text', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .addUniqueConstraint('shares_once', ['session_id', 'kind', 'target_id'])
    .execute()
  await schema.createIndex('shares_by_target').on('shares').columns(['kind', 'target_id']).execute()
  await schema
    .createTable('snapshots')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('session_id', 'text', (column) =>
      column.notNull().references('sessions.id').onDelete('cascade'),
    )
    .addColumn('up_to', 'bigint', (column) => column.notNull())
    .addColumn('outputs', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('created_by', 'text', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .execute()
  await schema.createIndex('snapshots_by_session').on('snapshots').column('session_id').execute()
}
