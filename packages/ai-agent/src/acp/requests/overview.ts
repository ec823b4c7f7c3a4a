/** `_sandlot/overview`: what runs and what waits, for administrators, who may stop it. */
import { EXT, overviewParams } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { Finding } from '@sandlot/shared/base/finding'
import type { AgentOverview } from '@sandlot/shared/admin/overview'
import { actorOf } from '../actor.ts'
import { parseParams } from '../errors.ts'
import type { AdminParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function overviewRequests({
  manager,
  overview,
  checks,
  audit,
  log,
}: AdminParts & ProtocolParts): ExtensionHandlers {
  return {
    [EXT.overview]: async ({ params }): Promise<AgentOverview | { findings: Finding[] }> => {
      const { user, ask } = parseParams(overviewParams, params, EXT.overview)
      if (user.role !== 'admin') throw new SandlotError('forbidden', 'Only an administrator can do this.')
      if (ask.do === 'check') return { findings: await checks() }
      if (ask.do === 'stop') {
        await manager.stopPrompt(ask.promptId, { id: user.id, name: user.name ?? 'An administrator' })
        await audit.write({ ...actorOf(user), what: 'prompt_stopped', whom: { id: ask.promptId } })
        log.info({ by: user.id, promptId: ask.promptId }, 'an administrator stopped a prompt')
      }
      return { ...(await overview()), prompts: await manager.runningPrompts(user.id) }
    },
  }
}
