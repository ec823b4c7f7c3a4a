import type { SearchHit, SearchKind, SearchResult } from '@sandlot/shared/search/search'
import { MAX_TITLE_CHARS, type SessionSummary } from '@sandlot/shared/chat/frames'
import { call } from '../net/call.ts'
import { type Pages, usePages } from '../state/use-pages.ts'

/** Filters next to the search words; absent: everything. */
export interface SearchFilters {
  kinds?: readonly SearchKind[] | undefined
  /** Epoch milliseconds, also of `until`. */
  since?: number | undefined
  until?: number | undefined
  /** The author: a person’s id, or `agent`. */
  who?: string | undefined
  /** The reader's own marks: a project’s id, and whether the chat is archived. */
  project?: string | undefined
  archived?: boolean | undefined
  /** A chat's id. */
  chat?: string | undefined
}

/** A page of what was found, newest first; `before` is the `next` of the page before it. */
function fetchHits(
  text: string,
  filters: SearchFilters,
  before?: number,
  signal?: AbortSignal,
): Promise<SearchResult> {
  const { kinds, ...others } = filters
  return call('searchChats', { query: { q: text, kind: kinds?.join(','), ...others, before }, signal })
}

/** Search hits in chats, newest first. */
export function useSearch(text: string, filters: SearchFilters = {}): Pages<SearchHit> {
  const words = text.trim()
  return usePages(words === '' ? '' : JSON.stringify([words, filters]), async (before, signal) => {
    const { hits: items, next } = await fetchHits(words, filters, before, signal)
    return { items, next }
  })
}

/** Chats by a part of their names. */
export function useNamed(text: string): Pages<SessionSummary> {
  const name = text.trim().slice(0, MAX_TITLE_CHARS)
  return usePages(name, async (before, signal) => {
    const { sessions: items, next } = await call('listChats', { query: { title: name, before }, signal })
    return { items, next }
  })
}
