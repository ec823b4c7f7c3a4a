/** `_sandlot/mark_chats`, `_sandlot/projects`: how people keep their chats, for our own service. */
import { EXT, markChatsParams, projectsParams } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { noProject } from '@sandlot/storage/shares/chats'
import { parseParams } from '../errors.ts'
import type { AcpServerParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function chatsRequests(parts: AcpServerParts): ExtensionHandlers {
  return {
    [EXT.markChats]: async ({ params, connection }) => {
      const { user, marks } = parseParams(markChatsParams, params, EXT.markChats)
      // A foreign client is the local user, whatever it says.
      await parts.manager.mark(connection.ours ? user : connection.user({}), marks)
      return {}
    },
    [EXT.projects]: async ({ params, connection }) => {
      const { user, ask } = parseParams(projectsParams, params, EXT.projects)
      const { id } = connection.ours ? user : connection.user({})
      const { projects } = parts
      if (projects === undefined) throw new SandlotError('not_implemented', 'This agent keeps no projects.')
      if (ask.do === 'put') await projects.putProject(id, ask.project)
      else if (!(await projects.removeProject(id, ask.id))) throw noProject()
      return {}
    },
  }
}
