/** State of this Sandlot for administrators: health, who is online, what runs and waits. */
import { EXT, type OverviewAsk } from '@sandlot/shared/acp/meta'
import { findings } from '@sandlot/shared/admin/checks'
import type { AgentOverview, Overview } from '@sandlot/shared/admin/overview'
import { messageOf } from '@sandlot/shared/base/errors'
import { mergeOverviews } from '../../agent/merge-answers.ts'
import { agentUserOf, authorsOf } from '../../auth/agent-user.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'
import { readinessOf } from '../health-routes.ts'

/** `/api/admin/overview` */
export function overviewHandlers(parts: Parts) {
  const { accounts, agent, checks, sockets, log } = parts
  const ask = async (c: Ctx, what: OverviewAsk): Promise<AgentOverview> =>
    mergeOverviews(await agent.each(EXT.overview, { user: agentUserOf(c.var.caller), ask: what }))
  const view = async (said: AgentOverview | undefined): Promise<Overview> => {
    const [health, authors] = await Promise.all([readinessOf(parts), authorsOf(accounts)])
    const here = said?.prompts.map(({ person }) => person) ?? []
    const names = new Set(here)
    return {
      ...said,
      health,
      node: process.versions.node,
      online: sockets.people().map(({ id, name }) => ({ id, name })),
      names: Object.fromEntries([...names].map((id) => [id, authors.get(id)?.name ?? 'A removed person'])),
    }
  }
  return {
    getOverview: async (c) => {
      // Without the agent the rest is what one looks for.
      const said = await ask(c, { do: 'view' }).catch((error: unknown) => {
        log.debug({ error: messageOf(error) }, 'no overview from the agent')
        return undefined
      })
      return c.json(await view(said))
    },
    getChecks: (c) => c.json(checks.view),
    runChecks: async (c) => {
      const asks = { user: agentUserOf(c.var.caller), ask: { do: 'check' } }
      const view = await checks.run(async () =>
        (await agent.each(EXT.overview, asks)).flatMap(({ answer }) => findings.parse(answer).findings),
      )
      return c.json(view)
    },
    stopPrompt: async (c) => {
      const promptId = c.req.param('id')
      // Whichever has it; the others know no such prompt.
      await ask(c, { do: 'stop', promptId })
      log.info({ promptId, by: c.var.caller.account.id }, 'an administrator stopped a prompt')
      return c.json(await view(await ask(c, { do: 'view' })))
    },
  } satisfies Partial<Handlers>
}
