/** Notifications about chats that are not in view. */
import type { SessionSummary } from '@sandlot/shared/chat/frames'

/**
 * `waiting`: for an approval or an answer. `done`: nothing runs any more in a chat of the reader’s.
 */
export interface News {
  sessionId: string
  title: string
  what: 'waiting' | 'done'
}

/**
 * Events between two states of the list. An unknown list is none; a chat that is new in it only
 * when it waits.
 */
export function newsBetween(
  before: readonly SessionSummary[] | null,
  after: readonly SessionSummary[] | null,
): News[] {
  if (before === null || after === null || before === after) return []
  const known = new Map(before.map((summary) => [summary.sessionId, summary]))
  return after.flatMap(({ sessionId, title, waiting, running, owner }): News[] => {
    const old = known.get(sessionId)
    const about = { sessionId, title: title ?? 'New chat' }
    if (waiting > (old?.waiting ?? 0)) return [{ ...about, what: 'waiting' }]
    return owner === undefined && old?.running === true && !running ? [{ ...about, what: 'done' }] : []
  })
}
