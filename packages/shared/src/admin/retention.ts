/**
 * How long things are kept: days by kind, set by administrators and applied once a day. Off where
 * nothing is set.
 */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'

export const RETENTION_KINDS = ['chats', 'outputs', 'images', 'audit', 'usage'] as const
const retentionKind = z.enum(RETENTION_KINDS)
export type RetentionKind = z.infer<typeof retentionKind>

/**
 * The fewest days of each. Limits by the month are reckoned from usage; an audit log of a few days
 * is none.
 */
export const LEAST_DAYS: Record<RetentionKind, number> = {
  chats: 1,
  outputs: 1,
  images: 1,
  audit: 30,
  usage: 62,
}
const MOST_DAYS = 3_650

const daysOf = (kind: RetentionKind) => z.int().min(LEAST_DAYS[kind]).max(MOST_DAYS).nullable().default(null)

/** Null: it is kept for ever. */
export const retentionDays = z.strictObject({
  chats: daysOf('chats'),
  outputs: daysOf('outputs'),
  images: daysOf('images'),
  audit: daysOf('audit'),
  usage: daysOf('usage'),
})
export type RetentionDays = z.infer<typeof retentionDays>
export const KEPT_FOR_EVER: RetentionDays = retentionDays.parse({})

/** How many went, by kind. */
export const removedCounts = z.record(z.string(), z.int())

/** `GET /api/admin/retention`. `PUT` takes `days` and the `revision` that was seen. */
export const retentionView = z.object({
  days: retentionDays,
  /** Grows with each change; 0: nothing was ever set. */
  revision: z.int(),
  /** The last time that it was applied, and how many went; null: never. */
  last: z.object({ at: z.number(), removed: removedCounts }).nullable(),
  /** When it is applied next, epoch milliseconds. */
  nextAt: z.number(),
})
export type RetentionView = z.infer<typeof retentionView>
export const putRetention = z.strictObject({ days: retentionDays, revision: z.int().min(0) })

/** `POST /api/admin/retention/preview` with `days`: what would go now. */
export const retentionPreview = z.object({
  kinds: z.array(
    z.object({
      kind: retentionKind,
      count: z.int(),
      /** About so many. */
      bytes: z.number(),
      /** Epoch milliseconds; null: nothing would go. */
      oldest: z.number().nullable(),
      /** Of the chats concerned: open on a screen now, so they stay until they are closed. */
      open: z.int().default(0),
    }),
  ),
})
export type RetentionPreview = z.infer<typeof retentionPreview>
export const previewRetention = z.strictObject({ days: retentionDays })

/** `_sandlot/retention`, for administrators: `RetentionView`, or `RetentionPreview`. */
export const retentionParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('get') }),
    putRetention.extend({ do: z.literal('put') }),
    previewRetention.extend({ do: z.literal('preview') }),
  ]),
})
export type RetentionAsk = z.infer<typeof retentionParams>['ask']
