/** Alert channels of this Sandlot and raised alerts, for administrators. */
import { Hono } from 'hono'
import type { AppEnv, Parts } from '../context.ts'
import { administratorsOnly, requireCaller } from '../request.ts'

/** `/api/admin/alerts` */
export function alertsRoutes(parts: Parts): Hono<AppEnv> {
  const { alerts, limits } = parts
  return new Hono<AppEnv>()
    .use(requireCaller(parts), administratorsOnly)
    .get('/', (c) => c.json(alerts.view))
    .post('/test', async (c) => {
      await limits.notificationTest(c.var.caller.account.id)
      return c.json(await alerts.test())
    })
}
