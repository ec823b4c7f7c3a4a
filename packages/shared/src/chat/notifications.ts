/**
 * Notices to people who are away: what there is, what a person chooses, and the bodies of the
 * routes under `/api/notices`.
 */
import { z } from 'zod'

/**
 * `approval`: a chat waits for an approval or an answer. `ended`: a prompt of theirs ended.
 * `mentioned`: in a comment. `shared`: a chat, with them or their team.
 */
export const NOTICE_KINDS = ['approval', 'ended', 'mentioned', 'shared'] as const
export type NotificationKind = (typeof NOTICE_KINDS)[number]

const ways = z.strictObject({ push: z.boolean(), mail: z.boolean() })

/** `PUT /api/notices/settings` → `NotificationSettings`. By kind, the ways it may come. */
export const noticeChoice = z.strictObject({ approval: ways, ended: ways, mentioned: ways, shared: ways })
export type NotificationChoice = z.infer<typeof noticeChoice>

/** Of a person who has chosen nothing. */
export const DEFAULT_NOTICES: NotificationChoice = {
  approval: { push: true, mail: true },
  ended: { push: true, mail: false },
  mentioned: { push: true, mail: true },
  shared: { push: true, mail: true },
}

/** `GET /api/notices/settings` */
export const noticeSettings = z.object({
  choice: noticeChoice,
  /** Whether this Sandlot can send e-mail. */
  mail: z.boolean(),
  /** Browsers of this person that take pushes. */
  browsers: z.number().int().nonnegative(),
})
export type NotificationSettings = z.infer<typeof noticeSettings>

/** `GET /api/notices/push` → the public VAPID key, base64url: `applicationServerKey`. */
export const pushKey = z.object({ key: z.string() })

/** As browsers write it: a key of an index has at most 2,704 bytes. */
const endpoint = z
  .url({ protocol: /^https?$/, error: 'must be an https address' })
  .max(2_000)
  .regex(/^[!-~]+$/, 'must be an https address')

/**
 * `POST /api/notices/push` → 204: a `PushSubscription` as its `toJSON` gives it. The same endpoint
 * again is the same browser.
 */
export const pushSubscription = z.object({
  endpoint,
  keys: z.strictObject({
    p256dh: z.string().regex(/^[\w-]{87}=?$/, 'must be a key of 65 bytes in base64url'),
    auth: z.string().regex(/^[\w-]{22}(==)?$/, 'must be 16 bytes in base64url'),
  }),
})
export type PushSubscriptionBody = z.infer<typeof pushSubscription>

/** `DELETE /api/notices/push` → 204, also where there was none. */
export const pushEnd = z.strictObject({ endpoint })

/** `POST /api/notices/test`: one notice by every way there is, whatever was chosen. */
export const noticeTest = z.object({
  push: z.object({ sent: z.number().int().nonnegative(), problems: z.array(z.string()) }),
  /** Null: this Sandlot sends no e-mail. */
  mail: z.object({ sent: z.boolean(), problem: z.string().optional() }).nullable(),
})
export type NotificationTest = z.infer<typeof noticeTest>
