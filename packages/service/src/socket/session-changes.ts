/**
 * Sends the changed row of a chat to everybody who sees it: the owner's at once, others' by their
 * current share, and its removal to those who lost it. One chat's changes keep the agent's order.
 */
import type { Readers, SessionChanged } from '@sandlot/shared/acp/meta'
import { createKeyedLock } from '@sandlot/shared/async/keyed-lock'
import { messageOf } from '@sandlot/shared/base/errors'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import type { ReaderOf } from '@sandlot/storage/shares/shares'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import type { Logger } from '../log.ts'
import type { Sockets } from './sockets.ts'
import { type Sessions, approversOf, lineFor } from '../chat/sessions.ts'

interface SessionChangesParts {
  sessions: Sessions
  sockets: Pick<Sockets, 'sendTo' | 'people'>
  accounts: Pick<AccountsStore, 'users'>
  log: Logger
}

/** Returns what takes a change; it never throws. */
export function sessionChanges(parts: SessionChangesParts): (change: SessionChanged) => void {
  const { sockets, log } = parts
  const lock = createKeyedLock()
  return (change) => {
    // Gone for its owner, whatever can be read of it.
    if (change.summary.deleted === true) sockets.sendTo(change.userId, changed(change.summary))
    lock
      .run(change.summary.sessionId, () => notifyReaders(parts, change))
      .catch((error: unknown) =>
        log.warn({ error: messageOf(error) }, 'a chat changed, and not all of its readers were notified'),
      )
  }
}

async function notifyReaders(
  { sessions, sockets, accounts }: SessionChangesParts,
  { userId, summary, sharedWith, unsharedFrom }: SessionChanged,
): Promise<void> {
  const isShared = sharedWith !== undefined || unsharedFrom !== undefined
  const people = sockets.people().filter(({ id }) => (id === userId ? summary.deleted !== true : isShared))
  if (people.length === 0) return
  const { sessionId } = summary
  const { shares: shareRows, chats } = await sessions.reader()
  const shares = await shareRows.of(sessionId)
  const users = people.every(({ id }) => id === userId) ? [] : await accounts.users.list()
  const now = Date.now()
  const named = approversOf(summary, userId, shares, users, now)
  for (const who of people) {
    const mark = (await chats.marks(who.id, [sessionId])).get(sessionId)
    const line = lineFor(who, summary, { ...named, shares, mark, now })
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
