/** Backups, for administrators: how they went, and when the next one is due. */
import { Hono } from 'hono'
import type { AppEnv, Parts } from '../context.ts'
import { administratorsOnly, requireCaller } from '../request.ts'

/** `/api/admin/backups` */
export function backupsRoutes(parts: Parts): Hono<AppEnv> {
  return new Hono<AppEnv>()
    .use(requireCaller(parts), administratorsOnly)
    .get('/', async (c) => c.json(await parts.backups.view()))
}
