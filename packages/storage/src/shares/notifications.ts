/**
 * The outbox of notifications: a row for each recipient, written in the transaction of the event.
 * The service reads it after its own cursor, so nothing here is marked as sent.
 */
import type { Kysely, Transaction } from 'kysely'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { NewNotification } from '../tables/records.ts'

export interface NotificationRow extends NewNotification {
  id: number
  /** Epoch milliseconds. */
  at: number
  sessionId: string
  /** False for an answered approval. */
  open: boolean
}

export interface NotificationReads {
  /** Rows of the outbox with a larger id, in order, with the state of their approvals. */
  after(id: number, limit: number): Promise<NotificationRow[]>
}

/** The service drops notifications older than an hour. */
const RETAINED_MS = 24 * 60 * 60_000
const MAX_ABOUT_CHARS = 200

/** In the event's transaction. Prunes old ones. */
export async function insertNotifications(
  trx: Transaction<SessionsSchema>,
  sessionId: string,
  notifications: readonly NewNotification[],
  at: number,
): Promise<void> {
  if (notifications.length === 0) return
  // At least the current time: numbers also grow in a restored older copy, for cursors elsewhere.
  // The counter's row is locked until the commit, so that numbers are in the order of commits.
  const counted = await trx
    .insertInto('counters')
    .values({ name: 'notices', value: Date.now() })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet((query) => ({
        value: query
          .case()
          .when('counters.value', '>=', query(query.ref('excluded.value'), '-', notifications.length))
          .then(query('counters.value', '+', notifications.length))
          .else(query.ref('excluded.value'))
          .end(),
      })),
    )
    .returning('value')
    .executeTakeFirstOrThrow()
  const first = Number(counted.value) - notifications.length + 1
  await trx
    .insertInto('notices')
    .values(
      notifications.map(({ userId, kind, ref, about }, index) => ({
        id: first + index,
        at,
        user_id: userId,
        kind,
        session_id: sessionId,
        ref,
        about: about?.slice(0, MAX_ABOUT_CHARS) ?? null,
      })),
    )
    .execute()
  await trx
    .deleteFrom('notices')
    .where('at', '<', at - RETAINED_MS)
    .execute()
}

export function notificationReads(db: Kysely<SessionsSchema>): NotificationReads {
  return { after: (id, limit) => readNotifications(db, id, limit) }
}

async function readNotifications(
  db: Kysely<SessionsSchema>,
  after: number,
  limit: number,
): Promise<NotificationRow[]> {
  const rows = await db
    .selectFrom('notices')
    .leftJoin('approvals', (join) =>
      join
        .onRef('approvals.session_id', '=', 'notices.session_id')
        .onRef('approvals.tool_call_id', '=', 'notices.ref'),
    )
    .selectAll('notices')
    .select('approvals.answered_at')
    .where('notices.id', '>', after)
    .orderBy('notices.id')
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    at: row.at,
    userId: row.user_id,
    kind: row.kind,
    sessionId: row.session_id,
    ref: row.ref,
    about: row.about ?? undefined,
    open: row.kind !== 'approval' || row.answered_at === null,
  }))
}

export async function addNotifications({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('notices')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('session_id', 'text', (column) =>
      column.notNull().references('sessions.id').onDelete('cascade'),
    )
    .addColumn('ref', 'text', (column) => column.notNull())
    .addColumn('about', 'text')
    .execute()
  await schema.createIndex('notices_by_time').on('notices').column('at').execute()
  await schema.createIndex('notices_by_session').on('notices').column('session_id').execute()
}
