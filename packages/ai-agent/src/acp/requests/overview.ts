/** `_sandlot/overview`: what runs and what waits, for administrators, who may stop it. */
import { EXT } from '@sandlot/shared/acp/meta'
import type { Finding } from '@sandlot/shared/base/finding'
import type { AgentOverview } from '@sandlot/shared/admin/overview'
import { actorOf } from '../actor.ts'
import type { AdminParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function overviewRequests({ manager, overview, checks, audit, log }: AdminParts & ProtocolParts) {
  return {
    [EXT.overview]: async ({ params: { user, ask } }): Promise<AgentOverview | { findings: Finding[] }> => {
      if (ask.do === 'check') return { findings: await checks() }
      if (ask.do === 'stop') {
        await manager.stopPrompt(ask.promptId, { id: user.id, name: user.name ?? 'An administrator' })
        await audit.write({ ...actorOf(user), what: 'prompt_stopped', whom: { id: ask.promptId } })
        log.info({ by: user.id, promptId: ask.promptId }, 'an administrator stopped a prompt')
      }
      return { ...(await overview()), prompts: await manager.runningPrompts(user.id) }
    },
  } satisfies Partial<ExtensionHandlers>
}
