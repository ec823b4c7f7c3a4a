/** Alerts to an operator (`/api/admin/alerts`). */
import { z } from 'zod'

/** Subjects of alerts, each with its own state. */
export const ALERT_KINDS = ['disk', 'store', 'agent', 'engine', 'model-key', 'provider', 'backup'] as const
export type AlertKind = (typeof ALERT_KINDS)[number]

export const alertsView = z.object({
  /** Target addresses. */
  email: z.array(z.string()),
  /** Target host of the webhook. */
  webhook: z.string().nullable(),
  /** Current problems, oldest first. */
  raised: z.array(
    z.object({
      kind: z.enum(ALERT_KINDS),
      title: z.string(),
      message: z.string(),
      /** Epoch milliseconds. */
      since: z.number(),
      /** The reason of incomplete delivery; null: delivered to all. */
      problem: z.string().nullable(),
    }),
  ),
})
export type AlertsView = z.infer<typeof alertsView>

/** `POST /api/admin/alerts/test`: the result of a test alert by target. */
export const alertTest = z.object({
  sent: z.array(z.object({ to: z.string(), problem: z.string().nullable() })),
})
export type AlertTest = z.infer<typeof alertTest>
