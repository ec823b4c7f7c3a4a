/**
 * Notifications for users who are away: kinds, choices, and the bodies of the routes under
 * `/api/notices`.
 */
import { z } from 'zod'

/**
 * `approval`: a chat waits for an approval or an answer. `ended`: the user's prompt ended.
 * `mentioned`: in a comment. `shared`: a chat, with them or their team.
 */
export const NOTIFICATION_KINDS = ['approval', 'ended', 'mentioned', 'shared'] as const
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number]

const ways = z.strictObject({ push: z.boolean(), mail: z.boolean() })

/** `PUT /api/notices/settings` → `NotificationSettings`. Allowed channels by kind. */
export const notificationChoice = z.strictObject({
  approval: ways,
  ended: ways,
  mentioned: ways,
  shared: ways,
})
export type NotificationChoice = z.infer<typeof notificationChoice>

/** For a user without a choice. */
export const DEFAULT_NOTIFICATIONS: NotificationChoice = {
  approval: { push: true, mail: true },
  ended: { push: true, mail: false },
  mentioned: { push: true, mail: true },
  shared: { push: true, mail: true },
}

/** `GET /api/notices/settings` */
export const notificationSettings = z.object({
  choice: notificationChoice,
  /** True if this Sandlot can send e-mail. */
  mail: z.boolean(),
  /** The user's browsers with a push subscription. */
  browsers: z.number().int().nonnegative(),
})
export type NotificationSettings = z.infer<typeof notificationSettings>

/** `GET /api/notices/push` → the public VAPID key, base64url: `applicationServerKey`. */
export const pushKey = z.object({ key: z.string() })

/** Limited by PostgreSQL: a key of an index has at most 2,704 bytes. */
const endpoint = z
  .url({ protocol: /^https?$/, error: 'must be an https address' })
  .max(2_000)
  .regex(/^[!-~]+$/, 'must be an https address')

/**
 * `POST /api/notices/push` → 204: the `toJSON` of a `PushSubscription`. The same endpoint is the
 * same browser.
 */
export const pushSubscription = z.object({
  endpoint,
  keys: z.strictObject({
    p256dh: z.string().regex(/^[\w-]{87}=?$/, 'must be a key of 65 bytes in base64url'),
    auth: z.string().regex(/^[\w-]{22}(==)?$/, 'must be 16 bytes in base64url'),
  }),
})
export type PushSubscriptionBody = z.infer<typeof pushSubscription>

/** `DELETE /api/notices/push` → 204, also without a subscription. */
export const pushEnd = z.strictObject({ endpoint })

/** `POST /api/notices/test`: one notification by every channel, regardless of the choice. */
export const notificationTest = z.object({
  push: z.object({ sent: z.number().int().nonnegative(), problems: z.array(z.string()) }),
  /** Null: this Sandlot sends no e-mail. */
  mail: z.object({ sent: z.boolean(), problem: z.string().optional() }).nullable(),
})
export type NotificationTest = z.infer<typeof notificationTest>
