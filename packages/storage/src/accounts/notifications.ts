/**
 * Choices about notifications, browsers with a push subscription, and cursors of sent
 * notifications.
 */
import {
  DEFAULT_NOTIFICATIONS,
  type NotificationChoice,
  type PushSubscriptionBody,
  notificationChoice,
} from '@sandlot/shared/chat/notifications'
import type { Kysely } from 'kysely'
import type { AccountsSchema } from '../tables/accounts.ts'

export interface PushTarget extends PushSubscriptionBody {
  failures: number
  retryAt: number
}

/** The recipient of a notification, with the permitted channels. */
export interface Recipient {
  email: string
  choice: NotificationChoice
  browsers: PushTarget[]
}

export interface NotificationsStore {
  /** Undefined: unknown person. */
  recipient(userId: string): Promise<Recipient | undefined>
  choose(userId: string, choice: NotificationChoice): Promise<void>
  /**
   * Subscribes the browser of this sign-in for this person, and ends its subscription for another
   * one. Above `MAX_BROWSERS` the oldest are removed.
   */
  subscribe(userId: string, signInId: string, subscription: PushSubscriptionBody): Promise<void>
  /** Does nothing without such a subscription. */
  unsubscribe(userId: string, endpoint: string): Promise<void>
  /** The push service no longer has the subscription, or refuses it. */
  endpointGone(endpoint: string): Promise<void>
  /** 0 failures: the last push was accepted. */
  endpointState(endpoint: string, state: { failures: number; retryAt: number }): Promise<void>
  /** Id of the last notification that this lane has processed; 0 before the first. */
  cursor(lane: string): Promise<number>
  moveCursor(lane: string, id: number): Promise<void>
}

const MAX_BROWSERS = 20

export function makeNotifications(db: Kysely<AccountsSchema>): NotificationsStore {
  return {
    recipient: (...args) => findRecipient(db, ...args),
    async choose(userId, choice) {
      const row = { userId, choice: JSON.stringify(choice) }
      await db
        .insertInto('notice_choice')
        .values(row)
        .onConflict((conflict) => conflict.column('userId').doUpdateSet({ choice: row.choice }))
        .execute()
    },
    subscribe: (...args) => subscribe(db, ...args),
    async unsubscribe(userId, endpoint) {
      await db
        .deleteFrom('push_subscription')
        .where('userId', '=', userId)
        .where('endpoint', '=', endpoint)
        .execute()
    },
    async endpointGone(endpoint) {
      await db.deleteFrom('push_subscription').where('endpoint', '=', endpoint).execute()
    },
    async endpointState(endpoint, state) {
      await db.updateTable('push_subscription').set(state).where('endpoint', '=', endpoint).execute()
    },
    async cursor(lane) {
      const row = await db
        .selectFrom('notice_cursor')
        .select('id')
        .where('lane', '=', lane)
        .executeTakeFirst()
      return row?.id ?? 0
    },
    async moveCursor(lane, id) {
      await db
        .insertInto('notice_cursor')
        .values({ lane, id })
        .onConflict((conflict) => conflict.column('lane').doUpdateSet({ id }))
        .execute()
    },
  }
}

async function findRecipient(
  db: Kysely<AccountsSchema>,
  ...[userId]: Parameters<NotificationsStore['recipient']>
): ReturnType<NotificationsStore['recipient']> {
  const person = await db
    .selectFrom('auth_user')
    .leftJoin('notice_choice', 'notice_choice.userId', 'auth_user.id')
    .select(['auth_user.email', 'notice_choice.choice'])
    .where('auth_user.id', '=', userId)
    .executeTakeFirst()
  if (person === undefined) return undefined
  const browsers = await db
    .selectFrom('push_subscription')
    .innerJoin('auth_session', 'auth_session.id', 'push_subscription.signInId')
    .selectAll('push_subscription')
    .where('push_subscription.userId', '=', userId)
    .where('auth_session.expiresAt', '>', new Date().toISOString())
    .execute()
  return {
    email: person.email,
    choice: person.choice === null ? DEFAULT_NOTIFICATIONS : toChoice(person.choice),
    browsers: browsers.map(({ endpoint, p256dh, auth, failures, retryAt }) => ({
      endpoint,
      keys: { p256dh, auth },
      failures,
      retryAt,
    })),
  }
}

function subscribe(
  db: Kysely<AccountsSchema>,
  ...[
    userId,
    signInId,
    {
      endpoint,
      keys: { p256dh, auth },
    },
  ]: Parameters<NotificationsStore['subscribe']>
): ReturnType<NotificationsStore['subscribe']> {
  return db.transaction().execute(async (trx) => {
    const row = { userId, signInId, p256dh, auth, createdAt: Date.now(), failures: 0, retryAt: 0 }
    await trx
      .insertInto('push_subscription')
      .values({ endpoint, ...row })
      .onConflict((conflict) => conflict.column('endpoint').doUpdateSet(row))
      .execute()
    const newest = trx
      .selectFrom('push_subscription')
      .select('endpoint')
      .where('userId', '=', userId)
      .orderBy('createdAt', 'desc')
      .limit(MAX_BROWSERS)
    await trx
      .deleteFrom('push_subscription')
      .where('userId', '=', userId)
      .where('endpoint', 'not in', newest)
      .execute()
  })
}

/** A damaged row, or one of another version, counts as no choice. */
function toChoice(json: string): NotificationChoice {
  const read = notificationChoice.safeParse(JSON.parse(json))
  return read.success ? read.data : DEFAULT_NOTIFICATIONS
}

export async function addNotifications({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('push_subscription')
    .addColumn('endpoint', 'text', (column) => column.primaryKey())
    .addColumn('userId', 'text', (column) => column.notNull().references('auth_user.id').onDelete('cascade'))
    .addColumn('signInId', 'text', (column) => column.notNull())
    .addColumn('p256dh', 'text', (column) => column.notNull())
    .addColumn('auth', 'text', (column) => column.notNull())
    .addColumn('createdAt', 'bigint', (column) => column.notNull())
    .addColumn('failures', 'bigint', (column) => column.notNull())
    .addColumn('retryAt', 'bigint', (column) => column.notNull())
    .execute()
  await schema
    .createIndex('push_subscription_user')
    .on('push_subscription')
    .columns(['userId', 'createdAt'])
    .execute()
  await schema
    .createTable('notice_choice')
    .addColumn('userId', 'text', (column) =>
      column.primaryKey().references('auth_user.id').onDelete('cascade'),
    )
    .addColumn('choice', 'text', (column) => column.notNull())
    .execute()
  await schema
    .createTable('notice_cursor')
    .addColumn('lane', 'text', (column) => column.primaryKey())
    .addColumn('id', 'bigint', (column) => column.notNull())
    .execute()
}
