/** `/api/sandbox`: the caller's sandbox, and what runs in its background. */
import { EXT } from '@sandlot/shared/acp/meta'
import {
  type SandboxAsk,
  backgroundJobs,
  jobOutput,
  sandboxParams,
  sandboxView,
} from '@sandlot/shared/workspace/sandbox'
import { SandlotError } from '@sandlot/shared/base/errors'
import { Hono } from 'hono'
import { agentUserOf } from '../../auth/agent-user.ts'
import { problemsOf } from '../../socket/frame.ts'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import { requireCaller } from '../request.ts'

export function sandboxRoutes(parts: Parts): Hono<AppEnv> {
  const ask = (c: Ctx, what: SandboxAsk): Promise<unknown> => {
    const params = sandboxParams.safeParse({ user: agentUserOf(c.var.caller), ask: what })
    if (!params.success) throw new SandlotError('bad_request', problemsOf(params.error))
    return parts.agent.request(EXT.sandbox, params.data)
  }
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/', async (c) => c.json(sandboxView.parse(await ask(c, { do: 'view' }))))
    .post('/reset', async (c) => {
      await ask(c, { do: 'reset' })
      return c.body(null, 204)
    })
    .post('/stop', async (c) => {
      await ask(c, { do: 'stop' })
      return c.body(null, 204)
    })
    .get('/jobs', async (c) => c.json(backgroundJobs.parse(await ask(c, { do: 'jobs' }))))
    .get('/jobs/:id/output', async (c) =>
      c.json(jobOutput.parse(await ask(c, { do: 'output', id: c.req.param('id') }))),
    )
    .delete('/jobs/:id', async (c) => {
      await ask(c, { do: 'end', id: c.req.param('id') })
      return c.body(null, 204)
    })
}
