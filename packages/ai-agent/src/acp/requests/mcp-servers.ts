/** `_sandlot/mcp_servers`: a person's own MCP servers, and for administrators the deployment's. */
import { EXT } from '@sandlot/shared/acp/meta'
import { mcpServersParams } from '@sandlot/shared/admin/mcp-servers'
import { SandlotError } from '@sandlot/shared/base/errors'
import { actorOf } from '../actor.ts'
import { parseParams } from '../errors.ts'
import type { PersonParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function mcpServersRequests({
  mcpServers: admin,
  userSeen,
  log,
}: PersonParts & ProtocolParts): ExtensionHandlers {
  return {
    [EXT.mcpServers]: async ({ params, signal }) => {
      const { user, ask } = parseParams(mcpServersParams, params, EXT.mcpServers)
      if (ask.of === 'deployment' && user.role !== 'admin')
        throw new SandlotError('forbidden', 'Only an administrator can do this.')
      if (user.role === 'guest') throw new SandlotError('forbidden', 'Guests have no MCP servers.')
      userSeen(user)
      const answer = await admin.answer(user.id, actorOf(user), ask, signal)
      if (ask.do === 'put' || ask.do === 'remove' || ask.do === 'sign_out')
        log.info(
          { by: user.id, of: ask.of, server: ask.do === 'put' ? ask.name : ask.id, what: ask.do },
          'an MCP server was changed',
        )
      return answer
    },
  }
}
