/**
 * Shares of sessions: stored, sent to the lists of those who see them, and ended at once for those
 * who do not any more.
 */
import type { Readers } from '@sandlot/shared/acp/meta'
import { LatestByKey } from '@sandlot/shared/async/latest-by-key'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import { randomText } from '@sandlot/shared/base/ids'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type {
  Author,
  NewShare,
  Share,
  ShareList,
  SharesAsk,
  Snapshot,
  SnapshotList,
  SnapshotsAsk,
} from '@sandlot/shared/chat/shares'
import { accessBy } from '@sandlot/storage/shares/shares'
import { LRUCache } from 'lru-cache'
import type { Access, Actor } from './access.ts'
import type { LoadedSessions } from './loaded.ts'
import type { SessionParts } from './parts.ts'
import type { Session } from './session.ts'

/** `setTimeout` takes no more; a longer wait is set again when this one is over. */
const LONGEST_TIMER_MS = 2_147_483_647
/** Characters of the secret in a link, about 5 bits each. */
const SECRET_CHARS = 40
/** Sessions whose readers are known without asking the store. */
const MOST_KNOWN = 2_000

/** One changed line of the lists of those who see a session. */
interface SessionChange {
  /** The owner. */
  userId: string
  summary: SessionSummary
  sharedWith?: Readers | undefined
  unsharedFrom?: Readers | undefined
}

export class SessionShares {
  readonly #parts: Pick<SessionParts, 'store' | 'users' | 'now' | 'log'>
  /** Only those in memory have readers. */
  readonly #sessions: Pick<LoadedSessions, 'peek' | 'all'>
  /** By session. */
  readonly #readers = new LRUCache<string, Promise<Readers | undefined>>({ max: MOST_KNOWN })
  /** By session: ends readers when the next share expires. */
  readonly #expiries = new Map<string, { at: number; timer: NodeJS.Timeout }>()
  readonly #listeners = new Set<LatestByKey<string, SessionChange>>()

  constructor(
    parts: Pick<SessionParts, 'store' | 'users' | 'now' | 'log'>,
    sessions: Pick<LoadedSessions, 'peek' | 'all'>,
  ) {
    this.#parts = parts
    this.#sessions = sessions
  }

  /**
   * Throws `bad_request` (to its owner, or ended already), `not_found` (a removed person, no such
   * share), `conflict` (too many).
   */
  async answer(
    session: Session,
    ask: SharesAsk,
    by: Author | undefined,
    actor?: Pick<NewAudit, 'who' | 'from'>,
  ): Promise<ShareList> {
    const { shares } = this.#parts.store
    if (ask.do === 'put') {
      await this.#put(session, ask.share, by, actor)
    } else if (ask.do === 'remove') {
      const line = actor && ({ ...actor, what: 'unshared', whom: { id: session.id } } as const)
      const removed = await shares.remove(session.id, ask.id, line)
      if (removed === undefined) throw new SandlotError('not_found', 'There is no such share of this chat.')
      await this.#changed(session, readersOf([removed]))
    }
    return { shares: await shares.of(session.id) }
  }

  async #put(
    session: Session,
    asked: NewShare,
    by: Author | undefined,
    actor: Pick<NewAudit, 'who' | 'from'> | undefined,
  ): Promise<void> {
    const { store, users, now } = this.#parts
    const { kind, targetId, expiresAt } = asked
    if (kind === 'person' && targetId === session.userId)
      throw new SandlotError('bad_request', 'This chat is yours: it need not be shared with you.')
    if (kind === 'person' && users.isRemoved(targetId))
      throw new SandlotError('not_found', 'This person was removed.')
    if (expiresAt !== null && expiresAt <= now())
      throw new SandlotError('bad_request', 'The share would have ended already. Choose a later time.')
    const share = { ...asked, id: `sh_${randomText(20)}`, createdAt: now() }
    const members = kind === 'person' ? [targetId] : users.membersOf(targetId)
    const userIds = members.filter((id) => id !== session.userId)
    const line = actor && ({ ...actor, what: 'shared', whom: { id: session.id }, after: asked } as const)
    await store.shares.put(session.id, share, session.userId, { userIds, about: by?.name ?? '' }, line)
    await this.#changed(session)
  }

  /** Throws `bad_request` when one of these users does not see the session. */
  async requireSeen(session: Session, userIds: readonly string[]): Promise<void> {
    const { store, users, now } = this.#parts
    const shares = await store.shares.of(session.id)
    const isSeenBy = (id: string): boolean =>
      id === session.userId ||
      (!users.isRemoved(id) && accessBy(shares, { id, teams: users.teamsOf(id) }, now()) !== undefined)
    if (userIds.every(isSeenBy)) return
    throw new SandlotError(
      'bad_request',
      'A person who is mentioned does not see this chat. Share it with them first, or leave the name as text.',
    )
  }

  /** Throws `not_found`, `conflict` (too many), `bad_request` (ended already). */
  async answerSnapshots(
    session: Session,
    ask: SnapshotsAsk,
    actor?: Pick<NewAudit, 'who' | 'from'>,
  ): Promise<SnapshotList> {
    const { store, now } = this.#parts
    const whom = { id: session.id }
    if (ask.do === 'make') {
      const { outputs, expiresAt } = ask.snapshot
      if (expiresAt !== null && expiresAt <= now())
        throw new SandlotError('bad_request', 'The link would have ended already. Choose a later time.')
      const about = { sessionId: session.id, upTo: session.seq, outputs, expiresAt, createdAt: now() }
      const snapshot: Snapshot = { id: randomText(SECRET_CHARS), ...about }
      // Not its id, which is the secret of the link.
      const after = { upTo: session.seq, outputs, expiresAt }
      const line = actor && ({ ...actor, what: 'snapshot_made', whom, after } as const)
      await store.shares.addSnapshot(snapshot, session.userId, line)
    } else if (ask.do === 'remove') {
      const line = actor && ({ ...actor, what: 'snapshot_removed', whom } as const)
      if (!(await store.shares.removeSnapshot(session.id, ask.id, line)))
        throw new SandlotError('not_found', 'There is no such snapshot of this chat.')
    }
    return { snapshots: await store.shares.snapshotsOf(session.id) }
  }

  /** Sends a changed row to everybody who sees the session, in order. Never throws. */
  publish(change: SessionChange): void {
    const id = change.summary.sessionId
    void this.#readersOf(id).then((sharedWith) => {
      this.#announce({ ...change, sharedWith })
    })
  }

  #announce(change: SessionChange): void {
    for (const listener of this.#listeners) listener.set(change.summary.sessionId, change)
  }

  /**
   * Changed lines of everybody's lists; of one session only the latest. Ends when the signal
   * aborts.
   */
  changes(signal: AbortSignal): AsyncIterable<SessionChange> {
    const listener = new LatestByKey<string, SessionChange>()
    this.#listeners.add(listener)
    const leave = (): void => {
      this.#listeners.delete(listener)
      listener.end()
    }
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
    return listener.values()
  }

  /** No reader is left. */
  end(): void {
    for (const listener of this.#listeners) listener.end()
    this.#listeners.clear()
  }

  /** Ends readers of the session at this time, when the share that they read by has expired. */
  expireAt(sessionId: string, at: number): void {
    const known = this.#expiries.get(sessionId)
    if (known !== undefined && known.at <= at) return
    clearTimeout(known?.timer)
    const wait = Math.min(Math.max(0, at - this.#parts.now()), LONGEST_TIMER_MS)
    const timer = setTimeout(() => void this.#expire(sessionId), wait)
    timer.unref()
    this.#expiries.set(sessionId, { at, timer })
  }

  /** Their access may have changed: they were removed, or are in other teams. Never throws. */
  recheckUser(userId: string): void {
    this.#recheckAll(userId).catch((error: unknown) => {
      const fields = { userId, error: messageOf(error) }
      this.#parts.log.warn(fields, 'readers of shared sessions could not be checked')
    })
  }

  async #recheckAll(userId: string): Promise<void> {
    for (const session of await this.#sessions.all()) {
      const concerned =
        session.actors.some(({ id }) => id === userId) ||
        session.queuedAuthors.some(({ id }) => id === userId)
      if (concerned) await this.recheck(session)
    }
  }

  /** Ends every reader and queued message whose user has no access now. */
  async recheck(session: Session): Promise<void> {
    const { store, now } = this.#parts
    const shares = await store.shares.of(session.id)
    const accessOf = ({ id, teams }: Actor): Access | undefined => {
      if (id === session.userId) return 'owner'
      if (this.#parts.users.isRemoved(id)) return undefined
      return accessBy(shares, { id, teams: this.#parts.users.teamsOf(id) ?? teams }, now())
    }
    const { actors } = session
    const gone = actors.filter((actor) => accessOf(actor) === undefined)
    if (gone.length > 0) session.unshare(new Set(gone.map(({ id }) => id)))
    for (const { id } of session.queuedAuthors) {
      const access = accessOf(actors.find((actor) => actor.id === id) ?? { id })
      if (access !== 'owner' && access?.access !== 'take_part') await session.withdrawOf(id)
    }
    const ends = shares.flatMap(({ expiresAt }) =>
      expiresAt !== null && expiresAt > now() ? [expiresAt] : [],
    )
    if (ends.length > 0) this.expireAt(session.id, Math.min(...ends))
  }

  /** For a person who is removed, and no other gets their chats: all their shares end. */
  async endAllOf(userId: string): Promise<void> {
    const { shares } = this.#parts.store
    for (const sessionId of await shares.sharedOf(userId)) {
      const removed = await shares.of(sessionId)
      for (const { id } of removed) await shares.remove(sessionId, id)
      this.#readers.delete(sessionId)
      const session = await this.#sessions.peek(sessionId)
      if (session === undefined) continue
      await this.#changed(session, readersOf(removed))
    }
  }

  /** Forgets what is known of a session that was deleted or has another owner. */
  forget(sessionId: string): void {
    this.#readers.delete(sessionId)
    clearTimeout(this.#expiries.get(sessionId)?.timer)
    this.#expiries.delete(sessionId)
  }

  async #changed(session: Session, unsharedFrom?: Readers): Promise<void> {
    this.#readers.delete(session.id)
    await this.recheck(session)
    const sharedWith = await this.#readersOf(session.id)
    this.#announce({ userId: session.userId, summary: session.summary(), sharedWith, unsharedFrom })
  }

  async #expire(sessionId: string): Promise<void> {
    this.#expiries.delete(sessionId)
    try {
      const session = await this.#sessions.peek(sessionId)
      if (session === undefined) return
      const { store, now } = this.#parts
      const expired = (await store.shares.of(sessionId)).filter(
        ({ expiresAt }) => expiresAt !== null && expiresAt <= now(),
      )
      await this.#changed(session, readersOf(expired))
    } catch (error) {
      const fields = { sessionId, error: messageOf(error) }
      this.#parts.log.warn(fields, 'access by an expired share could not be ended; retrying')
      this.expireAt(sessionId, this.#parts.now() + 1_000)
    }
  }

  /** Undefined: it is not shared, or cannot be looked up. */
  #readersOf(sessionId: string): Promise<Readers | undefined> {
    const known = this.#readers.get(sessionId)
    if (known !== undefined) return known
    const asked = this.#parts.store.shares.of(sessionId).then(
      (shares) => (shares.length === 0 ? undefined : readersOf(shares)),
      (error: unknown) => {
        const fields = { sessionId, error: messageOf(error) }
        this.#parts.log.warn(fields, 'the shares of a session could not be read')
        this.#readers.delete(sessionId)
        return undefined
      },
    )
    this.#readers.set(sessionId, asked)
    return asked
  }
}

function readersOf(shares: readonly Share[]): Readers {
  const of = (kind: Share['kind']): string[] =>
    shares.filter((share) => share.kind === kind).map(({ targetId }) => targetId)
  return { people: of('person'), teams: of('team') }
}
