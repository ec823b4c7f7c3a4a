/** `_sandlot/instructions`: a person's own instructions, for our own service. */
import type { AgentApp } from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp-meta'
import { SandlotError } from '@sandlot/shared/errors'
import { type Instructions, instructionsParams } from '@sandlot/shared/instructions'
import { parseParams } from './errors.ts'
import type { Serving } from './serving.ts'

export function addInstructionsRequests(app: AgentApp, serving: Serving): void {
  const { parts, handled } = serving
  app.onRequest(
    EXT.instructions,
    (params: unknown): unknown => params,
    handled(async ({ params }: { params: unknown }): Promise<Instructions> => {
      const { user, text } = parseParams(instructionsParams, params, EXT.instructions)
      const { connection } = serving
      const { instructions } = parts
      if (instructions === undefined)
        throw new SandlotError('not_implemented', 'This agent keeps no instructions.')
      const { id } = connection.ours ? user : connection.user({})
      if (text !== undefined) await instructions.put(id, text.trim().toWellFormed(), Date.now())
      return { text: await instructions.get(id) }
    }),
  )
}
