/**
 * The sessions in memory: at most one object for each. Idle ones leave after a short time.
 */
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import type { CreatedSession } from '@sandlot/storage/sessions/sessions'
import { Session } from './session.ts'
import type { RunnerParts, SessionParts } from './parts.ts'

/** Limits of the sessions in memory. Those in use stay. */
interface CacheLimits {
  /** About what all take of memory; above it the least recently used idle ones leave. */
  bytes: number
  /**
   * Milliseconds since its last use before which none leaves: who asked for it is about to use it.
   */
  graceMs: number
  /** Milliseconds without a use after which an idle one leaves. */
  idleMs: number
}

const DEFAULT_LIMITS: CacheLimits = { bytes: 64 * 1024 * 1024, graceMs: 5_000, idleMs: 60_000 }
/** About what a session takes of memory besides its log. */
const SESSION_BYTES = 16 * 1024

interface Loaded {
  loading: Promise<Session>
  /** In the time of `performance.now()`. */
  usedAt: number
}

type LoadedParts = SessionParts & Pick<RunnerParts, 'ending'>

export class LoadedSessions {
  readonly #parts: LoadedParts
  readonly #changed: (userId: string, summary: SessionSummary) => void
  readonly #loaded: (session: Session) => Promise<void>
  readonly #limits: CacheLimits
  /** In the order of their last use. */
  readonly #sessions = new Map<string, Loaded>()
  #timer: NodeJS.Timeout | undefined

  /**
   * `changed` gets every change of a session's line in the list, `loaded` each session before it
   * resumes anything.
   */
  constructor(
    parts: LoadedParts,
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
      this.#used(sessionId, loaded.loading)
      const session = await loaded.loading
      if (!session.lost) return session
      if (this.#sessions.get(sessionId)?.loading === loaded.loading) this.#sessions.delete(sessionId)
    }
    const row = await this.#parts.store.sessions.get(sessionId)
    return row === undefined ? undefined : this.loadAndResume(row)
  }

  /** Undefined when it is not in memory. */
  async peek(sessionId: string): Promise<Session | undefined> {
    const session = await this.#sessions.get(sessionId)?.loading.catch(() => undefined)
    return session?.lost === true ? undefined : session
  }

  /** The same object also when it is asked for twice at once. */
  loadAndResume(row: CreatedSession): Promise<Session> {
    const known = this.#sessions.get(row.id)
    if (known !== undefined) return known.loading
    const loading = this.#start(row)
    this.#used(row.id, loading)
    this.#forgetLater()
    loading.catch(() => this.#sessions.delete(row.id))
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
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sessions.clear()
  }

  /**
   * A session whose prompt was begun by an earlier process resumes it as soon as it is opened.
   */
  async #start(row: CreatedSession): Promise<Session> {
    const { userId, runningPromptId } = row
    await this.#parts.ownership.claim(userId)
    const session = await Session.load(row, this.#parts, (summary) => this.#changed(userId, summary))
    await this.#loaded(session)
    if (runningPromptId !== null)
      await session.resumeUnfinished(this.#parts.restarts.resumeCounts(runningPromptId, userId))
    return session
  }

  /** Makes it the most recently used. */
  #used(sessionId: string, loading: Promise<Session>): void {
    this.#sessions.delete(sessionId)
    this.#sessions.set(sessionId, { loading, usedAt: performance.now() })
  }

  /** Again and again as long as there are sessions: they become idle without a call from here. */
  #forgetLater(): void {
    if (this.#sessions.size === 0) return
    this.#timer ??= setTimeout(() => {
      void this.#forgetIdle().finally(() => {
        this.#timer = undefined
        this.#forgetLater()
      })
    }, this.#limits.graceMs).unref()
  }

  async #forgetIdle(): Promise<void> {
    const { bytes, graceMs, idleMs } = this.#limits
    let taken = (await this.all()).reduce((sum, session) => sum + SESSION_BYTES + session.bytes, 0)
    const entries = [...this.#sessions]
    for (const [id, { loading }] of entries) {
      const session = await loading.catch(() => undefined)
      // Looked up again: during the wait it may have been used, or lost and reloaded.
      const entry = this.#sessions.get(id)
      if (session === undefined || entry?.loading !== loading) continue
      if (!session.idle) {
        this.#used(id, loading)
        continue
      }
      const unusedMs = performance.now() - entry.usedAt
      if (unusedMs < graceMs || (unusedMs < idleMs && taken <= bytes)) continue
      this.#sessions.delete(id)
      taken -= SESSION_BYTES + session.bytes
      session.forget()
    }
  }
}
