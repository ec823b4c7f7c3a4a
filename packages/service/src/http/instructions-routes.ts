/** What people want the agent to keep to, their own and the team's. The agent keeps it; here it only passes through. */
import { EXT } from '@sandlot/shared/acp-meta'
import { instructions, teamInstructions } from '@sandlot/shared/instructions'
import { Hono } from 'hono'
import type { AppEnv, Ctx, Parts } from './context.ts'
import { readBody, requireAdministrator, requireCaller, requireSignIn } from './request.ts'

export function instructionsRoutes(parts: Parts): Hono<AppEnv> {
  const ask = (c: Ctx, of: 'own' | 'team', text?: string): Promise<unknown> => {
    const { id, role } = c.var.caller.account
    return parts.agent.request(EXT.instructions, {
      user: { id, role },
      of,
      text,
    })
  }
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/', async (c) => c.json(instructions.parse(await ask(c, 'own'))))
    .put('/', async (c) => {
      // What an API key may do is bounded; what its owner's agent keeps to in every session is not its to say.
      requireSignIn(c)
      const { text } = await readBody(c, instructions)
      return c.json(instructions.parse(await ask(c, 'own', text)))
    })
    .get('/team', async (c) => c.json(teamInstructions.parse(await ask(c, 'team'))))
    .put('/team', async (c) => {
      requireSignIn(c)
      requireAdministrator(c)
      const { text } = await readBody(c, instructions)
      const kept = teamInstructions.parse(await ask(c, 'team', text))
      parts.log.info({ by: c.var.caller.account.id }, 'changed the instructions of the team')
      return c.json(kept)
    })
}
