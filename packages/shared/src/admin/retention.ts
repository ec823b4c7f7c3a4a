/** Retention: days by kind, set by administrators and applied once a day. Off by default. */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'

export const RETENTION_KINDS = ['chats', 'outputs', 'images', 'audit', 'usage'] as const
const retentionKind = z.enum(RETENTION_KINDS)
export type RetentionKind = z.infer<typeof retentionKind>

/**
 * The fewest days of each. Monthly limits are computed from usage; an audit log of a few days has
 * no use.
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

/** Null: for ever. */
export const retentionDays = z.strictObject({
  chats: daysOf('chats'),
  outputs: daysOf('outputs'),
  images: daysOf('images'),
  audit: daysOf('audit'),
  usage: daysOf('usage'),
})
export type RetentionDays = z.infer<typeof retentionDays>
export const RETAINED_FOR_EVER: RetentionDays = retentionDays.parse({})

/** Numbers of removed items by kind. */
export const removedCounts = z.record(z.string(), z.int())

/** `GET /api/admin/retention`. `PUT` takes `days` and the `revision` that was seen. */
export const retentionView = z.object({
  days: retentionDays,
  /** Grows with each change; 0: nothing was ever set. */
  revision: z.int(),
  /** The last run and its counts; null: never. */
  last: z.object({ at: z.number(), removed: removedCounts }).nullable(),
  /** The next run, epoch milliseconds. */
  nextAt: z.number(),
})
export type RetentionView = z.infer<typeof retentionView>
export const putRetention = z.strictObject({ days: retentionDays, revision: z.int().min(0) })

/** `POST /api/admin/retention/preview` with `days`: the effect of a run now. */
export const retentionPreview = z.object({
  kinds: z.array(
    z.object({
      kind: retentionKind,
      count: z.int(),
      /** An estimate. */
      bytes: z.number(),
      /** Epoch milliseconds; null: nothing would be removed. */
      oldest: z.number().nullable(),
      /** Chats that are open on a screen now: retained until they are closed. */
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
