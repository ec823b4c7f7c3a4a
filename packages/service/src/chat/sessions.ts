/**
 * Reads sessions of ai-agent's database for one person: their own and those that are shared with
 * them; others are not found.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Account } from '@sandlot/shared/account/api'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import type { Author, Share } from '@sandlot/shared/chat/shares'
import { type ReaderOf, type SharedAccess, accessBy } from '@sandlot/storage/shares/shares'
import type { ChatMark } from '@sandlot/storage/shares/chats'
import { openSessionReader } from '@sandlot/storage/store/open'
import type { SessionReader } from '@sandlot/storage/sessions/store'
import type { SessionRow } from '@sandlot/storage/tables/records'

/** Time that a request waits for the agent to create or migrate its database, in milliseconds. */
const WAIT_MS = 500

/** A reader's access to a session. */
export type Access = 'owner' | SharedAccess

export interface SeenSession {
  row: SessionRow
  access: Access
}

export interface Sessions {
  /** Throws `not_found`, `not_ready`. */
  get(reader: ReaderOf, sessionId: string): Promise<SeenSession>
  /** Undefined: it is not there for them. Throws `not_ready`. */
  find(reader: ReaderOf, sessionId: string): Promise<SeenSession | undefined>
  /** The reader itself; throws `not_ready` while there is no database with our schema. */
  reader(): Promise<SessionReader>
  close(): Promise<void>
}

/**
 * The database is ai-agent's: on a first start it may not be there yet, so it is opened when it is
 * first needed, and tried again when that failed.
 */
export function openSessions(where: string): Sessions {
  let opening: Promise<SessionReader> | undefined
  // Shared by all requests, also where one of them opens it.
  const outside = AsyncLocalStorage.snapshot()
  const ended = new AbortController()

  const reader = async (): Promise<SessionReader> => {
    opening ??= outside(() => openSessionReader(where, { waitMs: WAIT_MS, signal: ended.signal }))
    const mine = opening
    try {
      return await mine
    } catch (error) {
      if (opening === mine) opening = undefined
      throw new SandlotError('not_ready', `Saved chats cannot be read yet: ${reasonOf(error)}`, {
        cause: error,
      })
    }
  }
  const find = async (who: ReaderOf, sessionId: string): Promise<SeenSession | undefined> => {
    const from = await reader()
    const row = await from.sessions.get(sessionId)
    if (row === undefined) return undefined
    if (row.userId === who.id) return { row, access: 'owner' }
    const access = accessBy(await from.shares.of(sessionId), who, Date.now())
    return access === undefined ? undefined : { row, access }
  }

  return {
    reader,
    find,
    async get(who, sessionId) {
      const seen = await find(who, sessionId)
      if (seen === undefined) throw new SandlotError('not_found', 'There is no such chat.')
      return seen
    },
    async close() {
      ended.abort()
      if (opening === undefined) return
      try {
        await (await opening).close()
      } catch (error) {
        if (!ended.signal.aborted) throw error
      }
    },
  }
}

/** Throws `forbidden` for those who only watch. */
export function refuseWatchers(access: Access): void {
  if (access === 'owner' || access.access !== 'watch') return
  throw new SandlotError('forbidden', 'You may watch this chat. Its owner can let you take part.')
}

/** Throws `forbidden` for those who do not own it. */
export function refuseOthers(access: Access): void {
  if (access !== 'owner') throw new SandlotError('forbidden', 'Only the owner of this chat can do this.')
}

interface LineParts {
  owner: Author
  shares: readonly Share[]
  mark: ChatMark | undefined
  approvers: readonly Author[]
  now: number
}

/** Names sent of those who may answer; the others are counted. */
const MAX_APPROVERS = 3

/** The owner, and the others who may answer what is pending in a chat. */
export function approversOf(
  { waiting }: Pick<SessionSummary, 'waiting'>,
  ownerId: string,
  shares: readonly Share[],
  /** All users; may be empty where the only reader is the owner. */
  users: readonly (Author & ReaderOf)[],
  now: number,
): Pick<LineParts, 'owner' | 'approvers'> {
  const owner = authorOf(users.find(({ id }) => id === ownerId) ?? { id: ownerId, name: '' })
  const giving = waiting === 0 ? [] : shares.filter(({ mayApprove }) => mayApprove)
  if (giving.length === 0) return { owner, approvers: [] }
  const others = users.filter((user) => user.id !== ownerId && accessBy(giving, user, now) !== undefined)
  return { owner, approvers: others.map(authorOf) }
}

/** The line as this person's list has it; undefined: they do not see it now. */
export function lineFor(
  who: ReaderOf & Pick<Account, 'role'>,
  line: SessionSummary,
  { owner, shares, mark, approvers, now }: LineParts,
): SessionSummary | undefined {
  const marked = { ...line, ...marksOf(line, mark) }
  if (who.id === owner.id) {
    const isShared = shares.some(({ expiresAt }) => expiresAt === null || expiresAt > now)
    return isShared ? { ...marked, shared: true } : marked
  }
  const given = accessBy(shares, who, now)
  if (given === undefined) return undefined
  const { access } = given
  const theirs = { ...marked, owner, access, ...(access === 'take_part' && { modeCeiling: given.mode }) }
  if (given.mayApprove) return { ...theirs, mayApprove: true }
  // Pending approvals are for those who may answer. Guests have no directory of people.
  const unanswerable = { ...theirs, waiting: 0 }
  if (approvers.length === 0 || who.role === 'guest') return unanswerable
  const moreApprovers = approvers.length - MAX_APPROVERS
  const named = { ...unanswerable, approvers: approvers.slice(0, MAX_APPROVERS) }
  return moreApprovers > 0 ? { ...named, moreApprovers } : named
}

function authorOf({ id, name }: Author): Author {
  return { id, name }
}

function marksOf({ endedAt = 0 }: SessionSummary, mark: ChatMark | undefined): Partial<SessionSummary> {
  return {
    ...(endedAt > (mark?.seenAt ?? 0) ? { unread: true } : {}),
    ...(mark?.pinned === true ? { pinned: true } : {}),
    ...(mark?.archived === true ? { archived: true } : {}),
    project: mark?.project ?? undefined,
  }
}

/** Without the path: users see this. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'newer_schema') return 'they were written by a newer version of Sandlot.'
  if (code === 'corrupt') return 'their file is damaged; it has to be restored from a backup.'
  if (code === 'io') return 'the disk of the server refuses to read them.'
  if (code === 'unreachable') return 'the database cannot be reached.'
  if (code === 'not_migrated') return 'the agent has not started yet.'
  return messageOf(error).slice(0, 200)
}
