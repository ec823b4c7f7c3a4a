/** `_sandlot/instructions`: a person's own instructions, and the team's, for our own service. */
import { EXT } from '@sandlot/shared/acp-meta'
import { SandlotError } from '@sandlot/shared/errors'
import { type Instructions, type TeamInstructions, instructionsParams } from '@sandlot/shared/instructions'
import { TEAM } from '../../config/instructions.ts'
import { parseParams } from '../errors.ts'
import type { AcpParts, ExtensionHandlers } from '../serving.ts'

export function instructionsRequests(parts: AcpParts): ExtensionHandlers {
  return {
    [EXT.instructions]: async ({ params, connection }): Promise<Instructions | TeamInstructions> => {
      const { user, of, text } = parseParams(instructionsParams, params, EXT.instructions)
      const { instructions, configuredInstructions: configured } = parts
      if (instructions === undefined)
        throw new SandlotError('not_implemented', 'This agent keeps no instructions.')
      const { id, role } = connection.ours ? user : connection.user({})
      if (of === 'team' && text !== undefined && role !== 'admin')
        throw new SandlotError('forbidden', 'Only an administrator can say what holds for the team.')
      const whose = of === 'team' ? TEAM : id
      if (text !== undefined) await instructions.put(whose, text.trim().toWellFormed(), Date.now())
      const kept = { text: await instructions.get(whose) }
      if (of === 'own') return kept
      return { ...kept, configured: configured?.team ?? '', operator: configured?.operator ?? '' }
    },
  }
}
