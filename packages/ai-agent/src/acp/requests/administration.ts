/**
 * Administration of the whole deployment, for our own service: tool statistics, rules for
 * everybody, the agent's settings.
 */
import { EXT } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { SandlotError } from '@sandlot/shared/base/errors'
import { type ProcessSettings, configurationParams } from '@sandlot/shared/admin/configuration'
import { type DeploymentRules, deploymentRulesParams } from '@sandlot/shared/admin/deployment-rules'
import { type ToolStatsView, toolStatsParams } from '@sandlot/shared/admin/tool-stats'
import type { Rule } from '@sandlot/shared/chat/rules'
import { actorOf } from '../actor.ts'
import { parseParams } from '../errors.ts'
import type { AdminParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

/** The asking user, an administrator. Throws `forbidden`. */
export function administrator(user: AgentUser): AgentUser {
  if (user.role !== 'admin') throw new SandlotError('forbidden', 'Only an administrator can do this.')
  return user
}

export function administrationRequests({
  administration,
  log,
}: AdminParts & ProtocolParts): ExtensionHandlers {
  return {
    [EXT.toolStats]: async ({ params }): Promise<ToolStatsView> => {
      administrator(parseParams(toolStatsParams, params, EXT.toolStats).user)
      return administration.toolStats()
    },
    [EXT.configuration]: async ({ params }): Promise<ProcessSettings> => {
      administrator(parseParams(configurationParams, params, EXT.configuration).user)
      return { settings: [...(await administration.settings())] }
    },
    [EXT.deploymentRules]: async ({ params }): Promise<DeploymentRules | Rule | object> => {
      const { user: given, ask } = parseParams(deploymentRulesParams, params, EXT.deploymentRules)
      const user = administrator(given)
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
  }
}
