/** `_sandlot/mark_chats`, `_sandlot/projects`: how people keep their chats, for our own service. */
import { EXT } from '@sandlot/shared/acp/meta'
import { noProject } from '@sandlot/storage/shares/chats'
import type { PersonParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function chatsRequests(parts: PersonParts & ProtocolParts) {
  return {
    [EXT.markChats]: async ({ params: { user, marks } }) => {
      await parts.manager.mark(user, marks)
      return {}
    },
    [EXT.projects]: async ({ params: { user, ask } }) => {
      const { projects } = parts
      if (ask.do === 'put') await projects.putProject(user.id, ask.project)
      else if (!(await projects.removeProject(user.id, ask.id))) throw noProject()
      return {}
    },
  } satisfies Partial<ExtensionHandlers>
}
