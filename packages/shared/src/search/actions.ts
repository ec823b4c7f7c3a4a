/** Actions of the search in chats. */
import type { Action } from '../base/action.ts'
import { searchResult } from './search.ts'

export const searchActions = {
  searchChats: { route: 'GET /api/search', scope: 'read', response: searchResult },
} as const satisfies Record<string, Action>
