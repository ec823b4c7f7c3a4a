/** A person's projects. They are the agent's rows; here they are read. */
import { EXT } from '@sandlot/shared/acp/meta'
import { type NewProject, type Project, newProject } from '@sandlot/shared/chat/chats'
import { SandlotError } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import { Hono } from 'hono'
import { agentUserOf } from '../../auth/agent-user.ts'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import { readBody, requireCaller, requireSignIn } from '../request.ts'

const ID_CHARS = 20

export function projectsRoutes(parts: Parts): Hono<AppEnv> {
  const { agent, sessions } = parts
  const own = async (c: Ctx): Promise<Project[]> =>
    (await sessions.reader()).chats.projects(c.var.caller.account.id)
  const put = async (c: Ctx, id: string, said: NewProject): Promise<Project> => {
    const project = { ...said, id }
    await agent.request(EXT.projects, {
      user: agentUserOf(c.var.caller),
      ask: { do: 'put', project },
    })
    return project
  }
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/', async (c) => c.json({ projects: await own(c) }))
    .post('/', async (c) => {
      // Like instructions: a leaked key must not change the rules of its owner's chats.
      requireSignIn(c)
      const said = await readBody(c, newProject)
      if (c.var.caller.account.role === 'guest')
        throw new SandlotError('forbidden', 'Guests take part in chats of others and have no projects.')
      return c.json(await put(c, `pr_${randomText(ID_CHARS)}`, said), 201)
    })
    .put('/:id', async (c) => {
      requireSignIn(c)
      const said = await readBody(c, newProject)
      const id = c.req.param('id')
      if (!(await own(c)).some((known) => known.id === id))
        throw new SandlotError('not_found', 'You have no such project.')
      return c.json(await put(c, id, said))
    })
    .delete('/:id', async (c) => {
      requireSignIn(c)
      const user = agentUserOf(c.var.caller)
      await agent.request(EXT.projects, { user, ask: { do: 'remove', id: c.req.param('id') } })
      return c.body(null, 204)
    })
}
