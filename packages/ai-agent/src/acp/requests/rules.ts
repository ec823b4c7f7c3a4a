/** `_sandlot/rules`: a person's own rules, for our own service. */
import { EXT } from '@sandlot/shared/acp-meta'
import { rulesParams } from '@sandlot/shared/rules-api'
import { parseParams } from '../errors.ts'
import type { AcpParts, ExtensionHandlers } from '../serving.ts'

export function rulesRequests(parts: AcpParts): ExtensionHandlers {
  return {
    [EXT.rules]: async ({ params, connection, signal }) => {
      const { user, ask } = parseParams(rulesParams, params, EXT.rules)
      // A foreign client is the local user, whatever it says.
      const { id } = connection.ours ? user : connection.user({})
      return parts.manager.rules.answer(id, ask, signal)
    },
  }
}
