/** `_sandlot/mark_chats`, `_sandlot/projects`: how people keep their chats, for our own service. */
import { EXT, markChatsParams, projectsParams } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { noProject } from '@sandlot/storage/shares/chats'
import { parseParams } from '../errors.ts'
import type { AcpServerParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function chatsRequests(parts: AcpServerParts): ExtensionHandlers {
  return {
    [EXT.markChats]: async ({ params }) => {
      const { user, marks } = parseParams(markChatsParams, params, EXT.markChats)
      await parts.manager.mark(user, marks)
      return {}
    },
    [EXT.projects]: async ({ params }) => {
      const { user, ask } = parseParams(projectsParams, params, EXT.projects)
      const { projects } = parts
      if (projects === undefined) throw new SandlotError('not_implemented', 'This agent keeps no projects.')
      if (ask.do === 'put') await projects.putProject(user.id, ask.project)
      else if (!(await projects.removeProject(user.id, ask.id))) throw noProject()
      return {}
    },
  }
}
