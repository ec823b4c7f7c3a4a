/** `_sandlot/secrets`: what a person has entrusted to the agent, by name, for our own service. Values only come in. */
import { EXT } from '@sandlot/shared/acp-meta'
import { SandlotError } from '@sandlot/shared/errors'
import { type SecretList, secretsParams } from '@sandlot/shared/secrets'
import { parseParams } from '../errors.ts'
import type { AcpParts, ExtensionHandlers } from '../serving.ts'

export function secretsRequests(parts: AcpParts): ExtensionHandlers {
  return {
    [EXT.secrets]: async ({ params, connection }): Promise<SecretList> => {
      const { user, ask } = parseParams(secretsParams, params, EXT.secrets)
      // A foreign client is the local user, whatever it says.
      const { id } = connection.ours ? user : connection.user({})
      const { secrets } = parts
      if (secrets === undefined) throw new SandlotError('not_implemented', 'This agent keeps no secrets.')
      if (ask.do === 'set') await secrets.set(id, ask.name, ask.value)
      if (ask.do === 'remove' && !(await secrets.remove(id, ask.name)))
        throw new SandlotError('not_found', 'You have no secret of that name.')
      return { secrets: await secrets.names(id) }
    },
  }
}
