/** `_sandlot/mcp_sign_in`: a person is back from the place where an MCP server let them sign in. */
import { EXT, mcpSignInParams } from '@sandlot/shared/acp-meta'
import { SandlotError } from '@sandlot/shared/errors'
import type { SignedIn } from '../../mcp/oauth/sign-ins.ts'
import { parseParams } from '../errors.ts'
import type { AcpParts, ExtensionHandlers } from '../serving.ts'

export function mcpRequests(parts: AcpParts): ExtensionHandlers {
  return {
    [EXT.mcpSignIn]: async ({ params, connection }): Promise<SignedIn> => {
      const { user, answer } = parseParams(mcpSignInParams, params, EXT.mcpSignIn)
      // A foreign client is the local user, whatever it says.
      const { id } = connection.ours ? user : connection.user({})
      if (parts.finishSignIn === undefined)
        throw new SandlotError('not_implemented', 'This agent has no MCP servers.')
      return parts.finishSignIn(id, new URLSearchParams(answer))
    },
  }
}
