/** Accounts, for administrators: list, add, remove. */
import { EXT } from '@sandlot/shared/acp/meta'
import { removedData } from '@sandlot/shared/account/api'
import type { UserList } from '@sandlot/shared/account/api'
import { SandlotError } from '@sandlot/shared/base/errors'
import { actorOf, userOf } from '../../auth/agent-user.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

export function peopleHandlers(parts: Parts) {
  const { accounts, sockets, log } = parts
  const whoIs = async (id: string) => {
    const found = (await accounts.users.list()).find((user) => user.id === id)
    return found === undefined ? { id } : userOf(found)
  }
  return {
    listUsers: async (c) => {
      const [users, removed] = await Promise.all([accounts.users.list(), accounts.removals.list()])
      return c.json({ users, removed } satisfies UserList)
    },
    addUser: async (c, body) => {
      const made = await accounts.users.create(await body())
      await accounts.audit.write({
        ...actorOf(c.var.caller),
        what: 'person_added',
        whom: userOf(made),
        after: { role: made.role },
      })
      log.info({ user: made.id, by: c.var.caller.account.id }, 'created a user')
      return c.json(made, 201)
    },
    resetUserPassword: async (c) => {
      const id = c.req.param('id')
      const password = await accounts.passwords.reset(id)
      sockets.signInsEnded(id)
      await accounts.audit.write({ ...actorOf(c.var.caller), what: 'password_reset', whom: await whoIs(id) })
      log.info({ user: id, by: c.var.caller.account.id }, 'set a new password')
      return c.json({ password })
    },
    removeSecondFactor: async (c) => {
      const id = c.req.param('id')
      const users = await accounts.users.list()
      if (!users.some((user) => user.id === id))
        throw new SandlotError('not_found', 'There is no such person.')
      await accounts.secondFactor.remove(id)
      const whom = await whoIs(id)
      await accounts.audit.write({ ...actorOf(c.var.caller), what: 'second_factor_removed', whom })
      log.info({ user: id, by: c.var.caller.account.id }, 'removed a second factor')
      return c.body(null, 204)
    },
    removeUser: (c) => removePerson(parts, c, c.req.param('id')),
  } satisfies Partial<Handlers>
}

async function removePerson(parts: Parts, c: Ctx, id: string): Promise<Response> {
  const { removals, log } = parts
  const data = removedData.safeParse(c.req.query('data'))
  if (!data.success)
    throw new SandlotError(
      'bad_request',
      'Say what becomes of their files and chats: ?data=keep or ?data=purge.',
    )
  const by = c.var.caller.account.id
  if (id === by) throw new SandlotError('forbidden', 'You cannot remove yourself. Another administrator can.')
  const handOver = c.req.query('handOver')
  if (handOver !== undefined) await handOverChats(parts, id, handOver)
  const removal = await removals.remove(id, data.data, {
    ...actorOf(c.var.caller),
    what: 'person_removed',
  })
  log.info({ user: id, data: data.data, handOver, by }, 'removed an account')
  return c.json(removal, 202)
}

/**
 * Gives what this person has shared to another. Before the account ends: where the agent is away
 * nothing is changed. Throws `bad_request`, `not_found`, `agent_unavailable`.
 */
async function handOverChats({ accounts, agent }: Parts, userId: string, handOver: string): Promise<void> {
  const users = await accounts.users.list()
  if (!users.some(({ id }) => id === userId)) throw new SandlotError('not_found', 'There is no such person.')
  const heir = users.find(({ id }) => id === handOver)
  if (heir === undefined || heir.id === userId)
    throw new SandlotError('bad_request', 'There is no such person to whom their shared chats could go.')
  if (heir.role === 'guest')
    throw new SandlotError('bad_request', 'A guest has no chats of their own: choose a member.')
  await agent.request(EXT.removePerson, { userId, data: 'keep', handOver })
}
