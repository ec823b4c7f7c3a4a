/** Retention times, for administrators: set them, and preview what would be removed. */
import { EXT } from '@sandlot/shared/acp/meta'
import {
  type RetentionAsk,
  type RetentionPreview,
  previewRetention,
  putRetention,
  retentionPreview,
  retentionView,
} from '@sandlot/shared/admin/retention'
import { Hono } from 'hono'
import { agentUserOf } from '../../auth/agent-user.ts'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import { administratorsOnly, readBody, requireCaller } from '../request.ts'

const DAY_MS = 86_400_000

/** `/api/admin/retention` */
export function retentionRoutes(parts: Parts): Hono<AppEnv> {
  const { accounts, agent } = parts
  const ask = (c: Ctx, what: RetentionAsk): Promise<unknown> =>
    agent.request(EXT.retention, { user: agentUserOf(c.var.caller), ask: what })
  return new Hono<AppEnv>()
    .use(requireCaller(parts), administratorsOnly)
    .get('/', async (c) => c.json(retentionView.parse(await ask(c, { do: 'get' }))))
    .put('/', async (c) => {
      const put = await readBody(c, putRetention)
      return c.json(retentionView.parse(await ask(c, { ...put, do: 'put' })))
    })
    .post('/preview', async (c) => {
      const { days } = await readBody(c, previewRetention)
      const { kinds } = retentionPreview.parse(await ask(c, { do: 'preview', days }))
      // The service has lines of its own, which the agent cannot see.
      const own =
        days.audit === null ? undefined : await accounts.audit.olderThan(Date.now() - days.audit * DAY_MS)
      return c.json({
        kinds: kinds.map((one) =>
          one.kind !== 'audit' || own === undefined
            ? one
            : {
                ...one,
                count: one.count + own.count,
                bytes: one.bytes + own.bytes,
                oldest: earliest(one.oldest, own.oldest),
              },
        ),
      } satisfies RetentionPreview)
    })
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.min(a, b)
}
