/** MCP servers that are added on the page: passed on to the agent, which keeps their values. */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import {
  type ServerScope,
  serverRequest,
  serverSignIn,
  serverStatus,
  serversView,
  type McpServersAsk,
} from '@sandlot/shared/admin/mcp-servers'
import { MCP_SIGN_IN_PATH } from '@sandlot/shared/base/mcp-client'
import { Hono } from 'hono'
import { setCookie } from 'hono/cookie'
import { agentUserOf } from '../../auth/agent-user.ts'
import { SIGN_IN_FROM, SIGN_IN_SECONDS } from './mcp-routes.ts'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import { administratorsOnly, readBody, requireCaller, requireSignIn } from '../request.ts'

/** `/api/mcp-servers`: the person's own; `/api/admin/mcp-servers`: the deployment's. */
export function mcpServersRoutes(parts: Parts, of: ServerScope): Hono<AppEnv> {
  const ask = (c: Ctx, what: McpServersAsk): Promise<unknown> =>
    parts.agent.request(EXT.mcpServers, { user: agentUserOf(c.var.caller), ask: what })
  const view = async (c: Ctx, what: McpServersAsk) => serversView.parse(await ask(c, what))
  /** A leaked API key must not send its owner's data to another server. */
  const mayChange = (c: Ctx): void => {
    if (of === 'own') requireSignIn(c)
  }
  const routes = new Hono<AppEnv>().use(requireCaller(parts))
  if (of === 'deployment') routes.use(administratorsOnly)
  else
    routes.use(async (c, next) => {
      if (c.var.caller.account.role === 'guest')
        throw new SandlotError('forbidden', 'Guests have no MCP servers.')
      await next()
    })
  return routes
    .get('/', async (c) => c.json(await view(c, { do: 'list', of })))
    .post('/', async (c) => {
      mayChange(c)
      return c.json(await view(c, { ...(await readBody(c, serverRequest)), do: 'put', of }), 201)
    })
    .put('/:id', async (c) => {
      mayChange(c)
      const server = await readBody(c, serverRequest)
      return c.json(await view(c, { ...server, do: 'put', of, id: c.req.param('id') }))
    })
    .delete('/:id', async (c) => {
      mayChange(c)
      return c.json(await view(c, { do: 'remove', of, id: c.req.param('id') }))
    })
    .post('/:id/test', async (c) => {
      mayChange(c)
      return c.json(serverStatus.parse(await ask(c, { do: 'test', of, id: c.req.param('id') })))
    })
    .post('/:id/sign-out', async (c) => {
      requireSignIn(c)
      return c.json(await view(c, { do: 'sign_out', of, id: c.req.param('id') }))
    })
    .post('/:id/sign-in', async (c) => {
      requireSignIn(c)
      const answer = serverSignIn.parse(await ask(c, { do: 'sign_in', of, id: c.req.param('id') }))
      // Says where the person comes from, so that they are brought back there.
      setCookie(c, SIGN_IN_FROM, of, {
        path: MCP_SIGN_IN_PATH,
        httpOnly: true,
        sameSite: 'Lax',
        secure: parts.config.publicUrl?.startsWith('https:') === true,
        maxAge: SIGN_IN_SECONDS,
      })
      return c.json(answer)
    })
}
