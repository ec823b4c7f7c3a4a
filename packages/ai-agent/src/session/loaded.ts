/**
 * The sessions in memory: at most one object for each, and of the unused ones the latest.
 */
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import type { SessionRow } from '@sandlot/storage/tables/records'
import { Session } from './session.ts'
import type { SessionParts } from './parts.ts'

/** Idle sessions, until the least recently used is evicted. */
interface CacheLimits {
  sessions: number
  /** About what their logs take of memory. */
  bytes: number
  /**
   * Milliseconds since its last use before which none is forgotten: who asked for it is about to
   * use it.
   */
  ms: number
}

const DEFAULT_LIMITS: CacheLimits = { sessions: 200, bytes: 64 * 1024 * 1024, ms: 5_000 }

interface Loaded {
  loading: Promise<Session>
  /** In the time of `performance.now()`. */
  usedAt: number
}

export class LoadedSessions {
  readonly #parts: SessionParts
  readonly #changed: (userId: string, summary: SessionSummary) => void
  readonly #loaded: (session: Session) => Promise<void>
  readonly #limits: CacheLimits
  /** In the order of their last use. */
  readonly #sessions = new Map<string, Loaded>()

  /**
   * `changed` gets every change of a session's line in the list, `loaded` each session before it
   * resumes anything.
   */
  constructor(
    parts: SessionParts,
    changed: (userId: string, summary: SessionSummary) => void,
    limits: CacheLimits = DEFAULT_LIMITS,
    loaded: (session: Session) => Promise<void> = () => Promise.resolve(),
  ) {
    this.#parts = parts
    this.#limits = limits
    this.#changed = changed
    this.#loaded = loaded
  }

  /** Undefined when there is none. Throws what the store throws, and `not_owner`. */
  async find(sessionId: string): Promise<Session | undefined> {
    const loaded = this.#sessions.get(sessionId)
    if (loaded !== undefined) {
      this.#sessions.delete(sessionId)
      this.#sessions.set(sessionId, { ...loaded, usedAt: performance.now() })
      const session = await loaded.loading
      if (!session.lost) return session
      if (this.#sessions.get(sessionId)?.loading === loaded.loading) this.#sessions.delete(sessionId)
    }
    const row = await this.#parts.store.getSession(sessionId)
    return row === undefined ? undefined : this.loadAndResume(row)
  }

  /** Undefined when it is not in memory. */
  async peek(sessionId: string): Promise<Session | undefined> {
    const session = await this.#sessions.get(sessionId)?.loading.catch(() => undefined)
    return session?.lost === true ? undefined : session
  }

  /** The same object also when it is asked for twice at once. */
  loadAndResume(row: SessionRow): Promise<Session> {
    const known = this.#sessions.get(row.id)
    if (known !== undefined) return known.loading
    const loading = this.#start(row)
    this.#sessions.set(row.id, { loading, usedAt: performance.now() })
    loading.then(
      () => this.#forgetIdle(),
      () => this.#sessions.delete(row.id),
    )
    return loading
  }

  /** It was deleted. */
  forget(sessionId: string): void {
    this.#sessions.delete(sessionId)
  }

  /** Forgets one that nothing uses. False: it is in use. */
  async release(sessionId: string): Promise<boolean> {
    const session = await this.peek(sessionId)
    if (session === undefined) return true
    if (!session.idle) return false
    this.#sessions.delete(sessionId)
    session.forget()
    return true
  }

  /** Leaves all of this user to another agent. Resolves when nothing of them runs here. */
  async releaseOf(userId: string): Promise<void> {
    const theirs = (await this.all()).filter((session) => session.userId === userId)
    for (const { id } of theirs) this.#sessions.delete(id)
    await Promise.all(theirs.map((session) => session.release()))
  }

  /** Those that could be loaded. */
  async all(): Promise<Session[]> {
    const settled = await Promise.allSettled([...this.#sessions.values()].map(({ loading }) => loading))
    return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  }

  clear(): void {
    this.#sessions.clear()
  }

  /**
   * A session whose prompt was begun by an earlier process resumes it as soon as it is opened.
   */
  async #start(row: SessionRow): Promise<Session> {
    const { userId, runningPromptId } = row
    await this.#parts.ownership?.claim(userId)
    const session = await Session.load(row, this.#parts, (summary) => this.#changed(userId, summary))
    await this.#loaded(session)
    if (runningPromptId !== null)
      await session.resumeUnfinished(this.#parts.resumeCounts?.(runningPromptId, userId))
    return session
  }

  async #forgetIdle(): Promise<void> {
    const { sessions, bytes, ms } = this.#limits
    let loaded = (await this.all()).reduce((sum, session) => sum + session.bytes, 0)
    for (const [id, { loading }] of this.#sessions) {
      if (this.#sessions.size <= sessions && loaded <= bytes) return
      const session = await loading.catch(() => undefined)
      // Looked up again: during the wait it may have been used, or lost and reloaded.
      const entry = this.#sessions.get(id)
      if (session?.idle !== true || entry?.loading !== loading) continue
      if (performance.now() - entry.usedAt < ms) continue
      this.#sessions.delete(id)
      loaded -= session.bytes
      session.forget()
    }
  }
}
