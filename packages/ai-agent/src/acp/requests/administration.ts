/**
 * Administration of the whole deployment, for our own service: tool statistics, rules for
 * everybody, the agent's settings.
 */
import { EXT } from '@sandlot/shared/acp/meta'
import type { ProcessSettings } from '@sandlot/shared/admin/configuration'
import type { DeploymentRules } from '@sandlot/shared/admin/deployment-rules'
import type { ToolStatsView } from '@sandlot/shared/admin/tool-stats'
import type { Rule } from '@sandlot/shared/chat/rules'
import { actorOf } from '../actor.ts'
import type { AdminParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function administrationRequests({ administration, log }: AdminParts & ProtocolParts) {
  return {
    [EXT.toolStats]: async (): Promise<ToolStatsView> => administration.toolStats(),
    [EXT.configuration]: async (): Promise<ProcessSettings> => ({
      settings: [...(await administration.settings())],
    }),
    [EXT.deploymentRules]: async ({ params: { user, ask } }): Promise<DeploymentRules | Rule | object> => {
      const { rules } = administration
      if (ask.do === 'list') return { configured: [...rules.configured], rules: await rules.everybodys() }
      if (ask.do === 'add') {
        const made = await rules.addForEverybody(ask.rule, actorOf(user))
        log.info(
          { by: user.id, rule: made.id, effect: made.effect },
          'an administrator made a rule for everybody',
        )
        return made
      }
      await rules.revokeForEverybody(ask.id, actorOf(user))
      log.info({ by: user.id, rule: ask.id }, 'an administrator revoked a rule for everybody')
      return {}
    },
  } satisfies Partial<ExtensionHandlers>
}
