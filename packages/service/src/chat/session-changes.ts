/**
 * Tells everybody who sees a chat how its line in the list has changed: its owner at once, others
 * as their share is now, and those who lost it that it is gone. Of one chat in the agent's order.
 */
import type { Readers, SessionChanged } from '@sandlot/shared/acp-meta'
import { createKeyedLock } from '@sandlot/shared/async/keyed-lock'
import { messageOf } from '@sandlot/shared/errors'
import type { SessionSummary } from '@sandlot/shared/frames'
import type { Author } from '@sandlot/shared/team/shares'
import type { ReaderOf } from '@sandlot/storage/sessions/shares'
import type { Logger } from '../log.ts'
import type { Sockets } from '../socket/sockets.ts'
import { type Sessions, lineFor } from './sessions.ts'

interface SessionChangesParts {
  sessions: Sessions
  sockets: Pick<Sockets, 'sendTo' | 'people'>
  /** By id. */
  authors: () => Promise<ReadonlyMap<string, Author>>
  log: Logger
}

/** Returns what takes a change; it never throws. */
export function sessionChanges(parts: SessionChangesParts): (change: SessionChanged) => void {
  const { sockets, log } = parts
  const lock = createKeyedLock()
  return (change) => {
    const { userId, summary, sharedWith, unsharedFrom } = change
    sockets.sendTo(userId, changed(summary))
    if (sharedWith === undefined && unsharedFrom === undefined) return
    lock
      .run(summary.sessionId, () => tellOthers(parts, change))
      .catch((error: unknown) =>
        log.warn({ error: messageOf(error) }, 'a shared chat has changed, and not everybody was told'),
      )
  }
}

async function tellOthers(
  { sessions, sockets, authors }: SessionChangesParts,
  { userId, summary, sharedWith, unsharedFrom }: SessionChanged,
): Promise<void> {
  const others = sockets.people().filter(({ id }) => id !== userId)
  if (others.length === 0) return
  const shares = await (await sessions.reader()).shares.of(summary.sessionId)
  const owner = (await authors()).get(userId) ?? { id: userId, name: '' }
  const now = Date.now()
  for (const who of others) {
    const line = lineFor(who, summary, { owner, shares, now })
    if (line !== undefined) sockets.sendTo(who.id, changed(line))
    else if (isAmong(who, sharedWith) || isAmong(who, unsharedFrom))
      sockets.sendTo(who.id, changed(goneOf(summary)))
  }
}

function isAmong({ id, teams }: ReaderOf, readers: Readers | undefined): boolean {
  if (readers === undefined) return false
  return readers.people.includes(id) || readers.teams.some((team) => teams?.includes(team))
}

/** Nothing of what it is now. */
function goneOf({ sessionId, updatedAt, mode }: SessionSummary): SessionSummary {
  return { sessionId, title: null, updatedAt, mode, running: false, waiting: 0, deleted: true }
}

function changed(summary: SessionSummary) {
  return { type: 'ai_chat_sessions' as const, changed: [summary] }
}
