/**
 * A user's secrets: names can be listed, values only set. Passed through to the agent, which keeps
 * them.
 */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { type SecretList, secretList, secretName, secretValue } from '@sandlot/shared/account/secrets'
import { Hono } from 'hono'
import { agentUserOf } from '../../auth/agent-user.ts'
import { problemsOf } from '../../socket/frame.ts'
import type { AppEnv, Ctx, Parts } from '../context.ts'
import { readBody, requireCaller, requireSignIn } from '../request.ts'

export function secretsRoutes(parts: Parts): Hono<AppEnv> {
  const ask = async (c: Ctx, what: object): Promise<SecretList> => {
    return secretList.parse(
      await parts.agent.request(EXT.secrets, { user: agentUserOf(c.var.caller), ask: what }),
    )
  }
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/', async (c) => c.json(await ask(c, { do: 'list' })))
    .put('/:name', async (c) => {
      // A leaked API key must not replace its owner's secrets.
      requireSignIn(c)
      const name = nameOf(c.req.param('name'))
      const { value } = await readBody(c, secretValue)
      await ask(c, { do: 'set', name, value })
      return c.body(null, 204)
    })
    .delete('/:name', async (c) => {
      requireSignIn(c)
      await ask(c, { do: 'remove', name: nameOf(c.req.param('name')) })
      return c.body(null, 204)
    })
}

function nameOf(text: string): string {
  const name = secretName.safeParse(text)
  if (!name.success) throw new SandlotError('bad_request', `The name of a secret ${problemsOf(name.error)}`)
  return name.data
}
