/** The deployment as a whole, for administrators: tools, sandboxes, rules, settings. */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { type ConfigurationView, processSettings } from '@sandlot/shared/admin/configuration'
import {
  type DeploymentRulesAsk,
  deploymentRules,
  newDeploymentRule,
} from '@sandlot/shared/admin/deployment-rules'
import {
  MOST_MEASURED,
  type SandboxesAsk,
  type SandboxUses,
  type SandboxesView,
  agentSandboxes,
  sandboxUses,
} from '@sandlot/shared/admin/sandboxes'
import { rule } from '@sandlot/shared/chat/rules'
import { Hono } from 'hono'
import { mergeToolStats } from '../../agent/merge-answers.ts'
import { agentUserOf } from '../../auth/agent-user.ts'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import { administratorsOnly, readBody, requireCaller, requireSignIn } from '../request.ts'

/** `/api/admin` */
export function operationsRoutes(parts: Parts): Hono<AppEnv> {
  const { agent, accounts, config } = parts
  const ask = (c: Ctx, method: string, what?: SandboxesAsk | DeploymentRulesAsk): Promise<unknown> =>
    agent.request(method, { user: agentUserOf(c.var.caller), ask: what })
  return new Hono<AppEnv>()
    .use(requireCaller(parts), administratorsOnly)
    .get('/tools', async (c) =>
      c.json(mergeToolStats(await agent.each(EXT.toolStats, { user: agentUserOf(c.var.caller) }))),
    )
    .get('/sandboxes', async (c) => {
      const [seen, users] = await Promise.all([ask(c, EXT.sandboxes, { do: 'list' }), accounts.listUsers()])
      const view = agentSandboxes.parse(seen)
      const people = new Map(users.map(({ id, name, email }) => [id, { name, email }]))
      const sandboxes = view.sandboxes.map((one) => ({ ...one, ...people.get(one.userId) }))
      return c.json({ ...view, sandboxes } satisfies SandboxesView)
    })
    .get('/sandboxes/use', async (c) => {
      const userIds = c.req.queries('user') ?? []
      if (userIds.length > MOST_MEASURED)
        throw new SandlotError('bad_request', `At most ${MOST_MEASURED} sandboxes are measured at once.`)
      const measured = await Promise.all(
        (await agent.byAgent(userIds)).map(async (group) =>
          sandboxUses.parse(await ask(c, EXT.sandboxes, { do: 'use', userIds: group })),
        ),
      )
      return c.json({ uses: Object.assign({}, ...measured.map(({ uses }) => uses)) } satisfies SandboxUses)
    })
    .post('/sandboxes/:userId/stop', async (c) => {
      await ask(c, EXT.sandboxes, { do: 'stop', userId: c.req.param('userId') })
      return c.body(null, 204)
    })
    .post('/sandboxes/:userId/reset', async (c) => {
      await ask(c, EXT.sandboxes, { do: 'reset', userId: c.req.param('userId') })
      return c.body(null, 204)
    })
    .get('/rules', async (c) =>
      c.json(deploymentRules.parse(await ask(c, EXT.deploymentRules, { do: 'list' }))),
    )
    .post('/rules', async (c) => {
      // A leaked key must not leave behind what outlives it.
      requireSignIn(c)
      const wanted = await readBody(c, newDeploymentRule)
      return c.json(rule.parse(await ask(c, EXT.deploymentRules, { do: 'add', rule: wanted })), 201)
    })
    .delete('/rules/:id', async (c) => {
      requireSignIn(c)
      await ask(c, EXT.deploymentRules, { do: 'revoke', id: c.req.param('id') })
      return c.body(null, 204)
    })
    .get('/configuration', async (c) => {
      // The service's own are worth seeing while the agent is away.
      const agents = await ask(c, EXT.configuration).then(
        (answer) => processSettings.parse(answer).settings,
        () => null,
      )
      const { settings, otherSettings: others } = config
      return c.json({ service: [...settings], agent: agents, others } satisfies ConfigurationView)
    })
}
