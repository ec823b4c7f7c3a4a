/** A person's projects. They are the agent's rows; here they are read. */
import { EXT } from '@sandlot/shared/acp/meta'
import { type NewProject, type Project } from '@sandlot/shared/chat/chats'
import { SandlotError } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import { agentUserOf } from '../../auth/agent-user.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

const ID_CHARS = 20

export function projectsHandlers(parts: Parts) {
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
  return {
    listProjects: async (c) => c.json({ projects: await own(c) }),
    addProject: async (c, body) => {
      return c.json(await put(c, `pr_${randomText(ID_CHARS)}`, await body()), 201)
    },
    changeProject: async (c, body) => {
      const said = await body()
      const id = c.req.param('id')
      if (!(await own(c)).some((known) => known.id === id))
        throw new SandlotError('not_found', 'You have no such project.')
      return c.json(await put(c, id, said))
    },
  } satisfies Partial<Handlers>
}
