/** Alerts to an operator (`/api/admin/alerts`). */
import { z } from 'zod'

/** What an alert can be about, each with a state of its own. */
export const ALERT_KINDS = ['disk', 'store', 'agent', 'engine', 'model-key', 'provider', 'backup'] as const
export type AlertKind = (typeof ALERT_KINDS)[number]

export const alertsView = z.object({
  /** Addresses that they go to. */
  email: z.array(z.string()),
  /** The host that they are posted to. */
  webhook: z.string().nullable(),
  /** What is wrong now, the oldest first. */
  raised: z.array(
    z.object({
      kind: z.enum(ALERT_KINDS),
      title: z.string(),
      message: z.string(),
      /** Epoch milliseconds. */
      since: z.number(),
      /** Why it has not reached each of them yet; null: it has. */
      problem: z.string().nullable(),
    }),
  ),
})
export type AlertsView = z.infer<typeof alertsView>

/** `POST /api/admin/alerts/test`: how sending one to each of them went. */
export const alertTest = z.object({
  sent: z.array(z.object({ to: z.string(), problem: z.string().nullable() })),
})
export type AlertTest = z.infer<typeof alertTest>
