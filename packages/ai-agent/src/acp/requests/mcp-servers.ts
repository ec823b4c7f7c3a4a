/** `_sandlot/mcp_servers`: a person's own MCP servers, and for administrators the deployment's. */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { actorOf } from '../actor.ts'
import type { PersonParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function mcpServersRequests({ mcpServers: admin, userSeen, log }: PersonParts & ProtocolParts) {
  return {
    [EXT.mcpServers]: async ({ params: { user, ask }, signal }) => {
      if (ask.of === 'deployment' && user.role !== 'admin')
        throw new SandlotError('forbidden', 'Only an administrator can do this.')
      userSeen(user)
      const answer = await admin.answer(user.id, actorOf(user), ask, signal)
      if (ask.do === 'put' || ask.do === 'remove' || ask.do === 'sign_out')
        log.info(
          { by: user.id, of: ask.of, server: ask.do === 'put' ? ask.name : ask.id, what: ask.do },
          'an MCP server was changed',
        )
      return answer
    },
  } satisfies Partial<ExtensionHandlers>
}
