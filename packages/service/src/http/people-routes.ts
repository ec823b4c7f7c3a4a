/** Accounts, for administrators: list, add, remove. */
import { newUserRequest, removedData } from '@sandlot/shared/api'
import type { UserList } from '@sandlot/shared/api'
import { SandlotError } from '@sandlot/shared/errors'
import { Hono } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { AppEnv, Parts } from './context.ts'
import { readBody, requireAdministrator, requireCaller } from './request.ts'

export function peopleRoutes(parts: Parts): Hono<AppEnv> {
  const { accounts, removals, log } = parts
  const administratorsOnly = createMiddleware<AppEnv>(async function isAdministrator(c, next) {
    requireAdministrator(c)
    await next()
  })
  return new Hono<AppEnv>()
    .use(requireCaller(parts), administratorsOnly)
    .get('/', async (c) => {
      const [users, removed] = await Promise.all([accounts.listUsers(), accounts.removals()])
      return c.json({ users, removed } satisfies UserList)
    })
    .post('/', async (c) => {
      const made = await accounts.createUser(await readBody(c, newUserRequest))
      log.info({ user: made.id, by: c.var.caller.account.id }, 'created a user')
      return c.json(made, 201)
    })
    .delete('/:id', async (c) => {
      const id = c.req.param('id')
      const data = removedData.safeParse(c.req.query('data'))
      if (!data.success)
        throw new SandlotError(
          'bad_request',
          'Say what becomes of their files and chats: ?data=keep or ?data=purge.',
        )
      const by = c.var.caller.account.id
      if (id === by)
        throw new SandlotError('forbidden', 'You cannot remove yourself. Another administrator can.')
      const removal = await removals.remove(id, data.data)
      log.info({ user: id, data: data.data, by }, 'ended an account')
      return c.json(removal, 202)
    })
}
