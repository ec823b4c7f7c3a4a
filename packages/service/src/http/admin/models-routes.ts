/** Endpoints of models, for administrators: passed on to the agent, which keeps their keys. */
import { EXT, type ModelsAsk } from '@sandlot/shared/acp/meta'
import {
  endpointRequest,
  endpointTestRequest,
  endpointTestResult,
  modelsView,
} from '@sandlot/shared/account/models-api'
import { Hono } from 'hono'
import { agentUserOf } from '../../auth/agent-user.ts'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import { administratorsOnly, readBody, requireCaller } from '../request.ts'

/** `/api/models` */
export function modelsRoutes(parts: Parts): Hono<AppEnv> {
  const ask = (c: Ctx, what: ModelsAsk): Promise<unknown> =>
    parts.agent.request(EXT.models, { user: agentUserOf(c.var.caller), ask: what })
  const view = async (c: Ctx, what: ModelsAsk) => modelsView.parse(await ask(c, what))
  return new Hono<AppEnv>()
    .use(requireCaller(parts), administratorsOnly)
    .get('/', async (c) => c.json(await view(c, { do: 'list' })))
    .post('/', async (c) =>
      c.json(await view(c, { ...(await readBody(c, endpointRequest)), do: 'put' }), 201),
    )
    .put('/:id', async (c) =>
      c.json(await view(c, { ...(await readBody(c, endpointRequest)), do: 'put', id: c.req.param('id') })),
    )
    .delete('/:id', async (c) => c.json(await view(c, { do: 'remove', id: c.req.param('id') })))
    .post('/test', async (c) => {
      const what = await readBody(c, endpointTestRequest)
      return c.json(endpointTestResult.parse(await ask(c, { ...what, do: 'test' })))
    })
}
