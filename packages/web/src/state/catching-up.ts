/** Which transcripts are behind, which are asked for again, and which are dropped. */
import type { ChatState } from './chat-state.ts'

/** Transcripts kept in memory beside the one on the screen. */
const KEPT_VIEWS = 8

/** Nothing comes any more on the old socket: what is on the screen may be behind. */
export function withStaleViews(state: ChatState): ChatState {
  const views = Object.entries(state.views).map(([id, view]) => [id, { ...view, sync: 'stale' as const }])
  return { ...state, views: Object.fromEntries(views) }
}

/** Sessions that a new socket follows: the open one, and those of unsent messages. */
export function toFollow({ activeId, outbox, views }: ChatState): string[] {
  const wanted = new Set([activeId, ...outbox.map(({ sessionId }) => sessionId)])
  return [...wanted].filter((id): id is string => id !== null && views[id] !== undefined)
}

/**
 * `opened` (least recently first) with `sessionId` opened now, and which of it is dropped for that.
 */
export function withOpened(
  opened: readonly string[],
  sessionId: string,
): { opened: string[]; old: readonly string[] } {
  const all = [...opened.filter((id) => id !== sessionId), sessionId]
  const old = all.slice(0, Math.max(0, all.length - KEPT_VIEWS))
  return { opened: all.slice(old.length), old }
}

export function withoutViews(state: ChatState, old: readonly string[]): ChatState {
  if (old.length === 0) return state
  const views = Object.entries(state.views).filter(([id]) => !old.includes(id))
  return { ...state, views: Object.fromEntries(views) }
}
