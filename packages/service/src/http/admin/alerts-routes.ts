/** Alert channels of this Sandlot and raised alerts, for administrators. */
import type { Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

/** `/api/admin/alerts` */
export function alertsHandlers(parts: Parts) {
  const { alerts, limits } = parts
  return {
    listAlerts: (c) => c.json(alerts.view),
    testAlerts: async (c) => {
      await limits.notificationTest(c.var.caller.account.id)
      return c.json(await alerts.test())
    },
  } satisfies Partial<Handlers>
}
