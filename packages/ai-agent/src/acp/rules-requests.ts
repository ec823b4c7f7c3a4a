/** `_sandlot/rules`: a person's own rules, for our own service. */
import type { AgentApp } from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp-meta'
import { rulesParams } from '@sandlot/shared/rules-api'
import { parseParams } from './errors.ts'
import type { Serving } from './serving.ts'

export function addRulesRequests(app: AgentApp, serving: Serving): void {
  const { parts, handled } = serving
  app.onRequest(
    EXT.rules,
    (params: unknown): unknown => params,
    handled(async ({ params, signal }: { params: unknown; signal: AbortSignal }) => {
      const { user, ask } = parseParams(rulesParams, params, EXT.rules)
      const { connection } = serving
      // A foreign client is the local user, whatever it says.
      const { id } = connection.ours ? user : connection.user({})
      return parts.manager.rules.answer(id, ask, signal)
    }),
  )
}
