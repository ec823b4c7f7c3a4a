/** The deployment as a whole, for administrators: tools, sandboxes, settings. */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { type ConfigurationView, processSettings } from '@sandlot/shared/admin/configuration'
import {
  MOST_MEASURED,
  type SandboxesAsk,
  type SandboxUses,
  type SandboxesView,
  agentSandboxes,
  sandboxUses,
} from '@sandlot/shared/admin/sandboxes'
import { mergeToolStats } from '../../agent/merge-answers.ts'
import { agentUserOf } from '../../auth/agent-user.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

export function operationsHandlers(parts: Parts) {
  const { agent, accounts, config } = parts
  const askSandboxes = (c: Ctx, ask: SandboxesAsk): Promise<unknown> =>
    agent.request(EXT.sandboxes, { user: agentUserOf(c.var.caller), ask })
  return {
    listTools: async (c) =>
      c.json(mergeToolStats(await agent.each(EXT.toolStats, { user: agentUserOf(c.var.caller) }))),
    listSandboxes: async (c) => {
      const [seen, users] = await Promise.all([askSandboxes(c, { do: 'list' }), accounts.users.list()])
      const view = agentSandboxes.parse(seen)
      const people = new Map(users.map(({ id, name, email }) => [id, { name, email }]))
      const sandboxes = view.sandboxes.map((one) => ({ ...one, ...people.get(one.userId) }))
      return c.json({ ...view, sandboxes } satisfies SandboxesView)
    },
    measureSandboxes: async (c) => {
      const userIds = c.req.queries('user') ?? []
      if (userIds.length > MOST_MEASURED)
        throw new SandlotError('bad_request', `At most ${MOST_MEASURED} sandboxes are measured at once.`)
      const measured = await Promise.all(
        (await agent.byAgent(userIds)).map(async (group) =>
          sandboxUses.parse(await askSandboxes(c, { do: 'use', userIds: group })),
        ),
      )
      return c.json({ uses: Object.assign({}, ...measured.map(({ uses }) => uses)) } satisfies SandboxUses)
    },
    getConfiguration: async (c) => {
      // The service's own are worth seeing while the agent is away.
      const agents = await agent.request(EXT.configuration, { user: agentUserOf(c.var.caller) }).then(
        (answer) => processSettings.parse(answer).settings,
        () => null,
      )
      const { settings, otherSettings: others } = config
      return c.json({ service: [...settings], agent: agents, others } satisfies ConfigurationView)
    },
  } satisfies Partial<Handlers>
}
