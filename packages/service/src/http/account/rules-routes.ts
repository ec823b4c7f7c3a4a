/** The user's own approval rules, passed through to ai-agent, which keeps and applies them. */
import { EXT } from '@sandlot/shared/acp/meta'
import { rule } from '@sandlot/shared/chat/rules'
import { type RulesAsk, askedReport, newRule, ruleList, rulePreview } from '@sandlot/shared/account/rules-api'
import { Hono } from 'hono'
import { agentUserOf } from '../../auth/agent-user.ts'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import { readBody, requireCaller, requireSignIn } from '../request.ts'

export function rulesRoutes(parts: Parts): Hono<AppEnv> {
  const { agent } = parts
  const ask = (c: Ctx, what: RulesAsk): Promise<unknown> => {
    return agent.request(EXT.rules, { user: agentUserOf(c.var.caller), ask: what })
  }
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/', async (c) => c.json(ruleList.parse(await ask(c, { do: 'list' }))))
    .post('/', async (c) => {
      // A leaked key must not leave behind what outlives it.
      requireSignIn(c)
      const made = await ask(c, { do: 'add', rule: await readBody(c, newRule) })
      return c.json(rule.parse(made), 201)
    })
    .post('/preview', async (c) => {
      const shown = await ask(c, { do: 'preview', rule: await readBody(c, newRule) })
      return c.json(rulePreview.parse(shown))
    })
    .get('/asked', async (c) => c.json(askedReport.parse(await ask(c, { do: 'asked' }))))
    .delete('/:id', async (c) => {
      requireSignIn(c)
      await ask(c, { do: 'revoke', id: c.req.param('id') })
      return c.body(null, 204)
    })
}
