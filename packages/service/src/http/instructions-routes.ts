/** A person's own instructions for the agent. The agent keeps them; here they only pass through. */
import { EXT } from '@sandlot/shared/acp-meta'
import { type Instructions, instructions } from '@sandlot/shared/instructions'
import { Hono } from 'hono'
import type { AppEnv, Ctx, Parts } from './context.ts'
import { readBody, requireCaller, requireSignIn } from './request.ts'

export function instructionsRoutes(parts: Parts): Hono<AppEnv> {
  const ask = async (c: Ctx, what: Partial<Instructions>): Promise<Instructions> => {
    const { id, role } = c.var.caller.account
    return instructions.parse(await parts.agent.request(EXT.instructions, { user: { id, role }, ...what }))
  }
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/', async (c) => c.json(await ask(c, {})))
    .put('/', async (c) => {
      // What an API key may do is bounded; what its owner's agent keeps to in every session is not its to say.
      requireSignIn(c)
      return c.json(await ask(c, await readBody(c, instructions)))
    })
}
