/** `GET /api/search`: in one's own chats and in those that are shared with one. */
import { type SearchHit, type SearchResult, searchQuery } from '@sandlot/shared/search/search'
import { SandlotError } from '@sandlot/shared/base/errors'
import { authorsOf } from '../auth/agent-user.ts'
import { problemsOf } from '../socket/frame.ts'
import type { Parts } from '../http/context.ts'
import type { Handlers } from '../http/actions.ts'

export function searchHandlers(parts: Parts) {
  const { accounts, sessions } = parts
  return {
    searchChats: async (c) => {
      const asked = searchQuery.safeParse(c.req.query())
      if (!asked.success) throw new SandlotError('bad_request', problemsOf(asked.error))
      const reader = await sessions.reader()
      const { hits, next } = await reader.sessions.search(c.var.caller.account, asked.data)
      const authors = hits.some(({ author }) => author !== null) ? await authorsOf(accounts) : new Map()
      const named = hits.map(({ author, ...hit }): SearchHit => {
        const isSaid = hit.kind === 'message' || hit.kind === 'comment'
        return isSaid && author !== null
          ? { ...hit, by: authors.get(author) ?? { id: author, name: '' } }
          : hit
      })
      return c.json({ hits: named, next } satisfies SearchResult)
    },
  } satisfies Partial<Handlers>
}
