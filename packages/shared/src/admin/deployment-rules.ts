/** Approval rules for everyone, for administrators: `/api/admin/rules`. */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'
import { rule, ruleEffect, ruleMatch } from '../chat/rules.ts'

/** `POST /api/admin/rules` → 201 with the `Rule`. `DELETE /api/admin/rules/:id` → 204. */
export const newDeploymentRule = z.strictObject({ effect: ruleEffect, match: ruleMatch })

/** `GET /api/admin/rules` */
export const deploymentRules = z.object({
  /** Read-only here; from the configuration file. */
  configured: z.array(rule),
  /** Created here, oldest first. */
  rules: z.array(rule),
})
export type DeploymentRules = z.infer<typeof deploymentRules>

/** `EXT.deploymentRules`: answered with `DeploymentRules`, `Rule` or `{}`. */
export const deploymentRulesParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('list') }),
    z.object({ do: z.literal('add'), rule: newDeploymentRule }),
    z.object({ do: z.literal('revoke'), id: z.string().max(200) }),
  ]),
})
