/**
 * `GET /api/people?query=`: with whom one may share. Names and ids; an address only where two have
 * the same name. A guest gets nothing.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type Directory, MAX_FOUND } from '@sandlot/shared/chat/shares-api'
import { z } from 'zod'
import { problemsOf } from '../../socket/frame.ts'
import type { Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

const asked = z.object({ query: z.string().trim().max(100).default('') })

export function directoryHandlers(parts: Parts) {
  const { accounts } = parts
  return {
    findPeople: async (c) => {
      const { account } = c.var.caller
      const read = asked.safeParse(c.req.query())
      if (!read.success) throw new SandlotError('bad_request', problemsOf(read.error))
      const query = read.data.query.toLowerCase()
      const [users, teams] = await Promise.all([accounts.users.list(), accounts.teams.list()])
      const others = users.filter(({ id }) => id !== account.id)
      const namesakes = new Set(
        others
          .filter(({ id, name }) => users.some((user) => user.id !== id && user.name === name))
          .map(({ name }) => name),
      )
      const has = (name: string): boolean => name.toLowerCase().includes(query)
      const people = others
        .filter(({ name, email }) => has(name) || email === query)
        .slice(0, MAX_FOUND)
        .map(({ id, name, email, role }): Directory['people'][number] => ({
          id,
          name,
          guest: role === 'guest' ? true : undefined,
          email: namesakes.has(name) ? email : undefined,
        }))
      const found = teams.filter(({ name }) => has(name)).slice(0, MAX_FOUND)
      return c.json({ people, teams: found.map(({ id, name }) => ({ id, name })) } satisfies Directory)
    },
  } satisfies Partial<Handlers>
}
