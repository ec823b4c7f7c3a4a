/** `/api/terminals`: a person's terminals. One of them is shown by a WebSocket at its address. */
import { EXT } from '@sandlot/shared/acp/meta'
import {
  type TerminalsAsk,
  openTerminalRequest,
  openedTerminal,
  terminalList,
  terminalsParams,
} from '@sandlot/shared/workspace/terminals'
import { SandlotError } from '@sandlot/shared/base/errors'
import { Hono } from 'hono'
import { agentUserOf } from '../../auth/agent-user.ts'
import { problemsOf } from '../../socket/frame.ts'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import { readBody, requireCaller } from '../request.ts'

export function terminalsRoutes(parts: Parts): Hono<AppEnv> {
  const ask = (c: Ctx, what: TerminalsAsk): Promise<unknown> => {
    const params = terminalsParams.safeParse({ user: agentUserOf(c.var.caller), ask: what })
    if (!params.success) throw new SandlotError('bad_request', problemsOf(params.error))
    return parts.agent.request(EXT.terminals, params.data)
  }
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/', async (c) => c.json(terminalList.parse(await ask(c, { do: 'list' }))))
    .post('/', async (c) => {
      const size = await readBody(c, openTerminalRequest)
      return c.json(openedTerminal.parse(await ask(c, { do: 'open', ...size })), 201)
    })
    .get('/:id', () => {
      throw new SandlotError('bad_request', 'This address takes WebSockets only.')
    })
    .delete('/:id', async (c) => {
      await ask(c, { do: 'close', id: c.req.param('id') })
      return c.body(null, 204)
    })
}
