/** `_sandlot/remove_person`: only our own service knows who may ask for it. */
import { EXT, removePersonParams } from '@sandlot/shared/acp-meta'
import { SandlotError, messageOf } from '@sandlot/shared/errors'
import { parseParams } from '../errors.ts'
import type { AcpParts, ExtensionHandlers } from '../serving.ts'

export function removalRequests(parts: AcpParts): ExtensionHandlers {
  return {
    [EXT.removePerson]: async ({ params, connection }) => {
      const { userId, data } = parseParams(removePersonParams, params, EXT.removePerson)
      if (!connection.ours || parts.removePerson === undefined)
        throw new SandlotError('not_implemented', 'People are not removed from here.')
      try {
        await parts.removePerson(userId, data)
      } catch (error) {
        const { cause } = error instanceof Error ? error : {}
        const stack = cause instanceof Error ? cause.stack : undefined
        parts.log.warn({ userId, data, error: messageOf(error), stack }, 'a person is not removed whole yet')
        throw error
      }
      return {}
    },
  }
}
