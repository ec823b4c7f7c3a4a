/** Standing instructions of users and of the team, passed through to the agent. */
import { EXT } from '@sandlot/shared/acp/meta'
import { instructions, teamInstructions } from '@sandlot/shared/account/instructions'
import { Hono } from 'hono'
import { agentUserOf } from '../../auth/agent-user.ts'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import { readBody, requireAdministrator, requireCaller, requireSignIn } from '../request.ts'

export function instructionsRoutes(parts: Parts): Hono<AppEnv> {
  const ask = (c: Ctx, of: 'own' | 'team', text?: string): Promise<unknown> => {
    return parts.agent.request(EXT.instructions, {
      user: agentUserOf(c.var.caller),
      of,
      text,
    })
  }
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/', async (c) => c.json(instructions.parse(await ask(c, 'own'))))
    .put('/', async (c) => {
      // An API key may not change the instructions of every session of its owner.
      requireSignIn(c)
      const { text } = await readBody(c, instructions)
      return c.json(instructions.parse(await ask(c, 'own', text)))
    })
    .get('/team', async (c) => c.json(teamInstructions.parse(await ask(c, 'team'))))
    .put('/team', async (c) => {
      requireAdministrator(c)
      const { text } = await readBody(c, instructions)
      const stored = teamInstructions.parse(await ask(c, 'team', text))
      parts.log.info({ by: c.var.caller.account.id }, 'changed the instructions of the team')
      return c.json(stored)
    })
}
