/** `_sandlot/mark_chats`, `_sandlot/projects`: how people keep their chats, for our own service. */
import { EXT, markChatsParams, projectsParams } from '@sandlot/shared/acp/meta'
import { noProject } from '@sandlot/storage/shares/chats'
import { parseParams } from '../errors.ts'
import type { PersonParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function chatsRequests({ manager, projects }: PersonParts & ProtocolParts): ExtensionHandlers {
  return {
    [EXT.markChats]: async ({ params }) => {
      const { user, marks } = parseParams(markChatsParams, params, EXT.markChats)
      await manager.mark(user, marks)
      return {}
    },
    [EXT.projects]: async ({ params }) => {
      const { user, ask } = parseParams(projectsParams, params, EXT.projects)
      if (ask.do === 'put') await projects.putProject(user.id, ask.project)
      else if (!(await projects.removeProject(user.id, ask.id))) throw noProject()
      return {}
    },
  }
}
