/** Removal of sessions: deleted, expired, handed over, or ended with the account of their owner. */
import type { RemovedData } from '@sandlot/shared/account/api'
import { messageOf } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import { toSessionSummary } from '@sandlot/storage/tables/rows'
import type { SessionRow } from '@sandlot/storage/tables/records'
import { StorageError } from '@sandlot/storage/storage-error'
import { openJobsOf } from '../tools/background/jobs.ts'
import type { LoadedSessions } from './loaded.ts'
import type { SessionParts } from './parts.ts'
import type { Session } from './session.ts'
import type { SessionShares } from './shares.ts'

/** Deleted at once. */
const AT_ONCE = 100

export class SessionRemoval {
  readonly #parts: Pick<SessionParts, 'store' | 'jobs' | 'users' | 'log'>
  readonly #sessions: LoadedSessions
  readonly #shares: SessionShares

  constructor(
    parts: Pick<SessionParts, 'store' | 'jobs' | 'users' | 'log'>,
    sessions: LoadedSessions,
    shares: SessionShares,
  ) {
    this.#parts = parts
    this.#sessions = sessions
    this.#shares = shares
  }

  /**
   * Remove it with everything in it; what it had left running in the background is ended first.
   * Silent when there is no such session of this user.
   */
  async delete(userId: string, sessionId: string, audit?: NewAudit): Promise<void> {
    const { store } = this.#parts
    const row = await store.sessions.get(sessionId)
    if (row?.userId !== userId) return
    const session = await this.#findReadable(sessionId)
    await session?.endForGood()
    if (session !== undefined) await this.#endJobs(session)
    await store.sessions.remove(sessionId, audit)
    this.#sessions.forget(sessionId)
    this.#shares.publish({
      userId,
      summary: { ...(session?.summary() ?? toSessionSummary(row)), deleted: true },
    })
    this.#shares.forget(sessionId)
  }

  /** True if it is open or running now. */
  async isOpen(sessionId: string): Promise<boolean> {
    return (await this.#sessions.peek(sessionId))?.idle === false
  }

  /** Forgets a chat in memory. False: it is open or running. */
  release(sessionId: string): Promise<boolean> {
    return this.#sessions.release(sessionId)
  }

  /** Deletes a chat in which nothing has happened since `updatedAt` and that is not open. */
  async expire({ id, userId, updatedAt }: Pick<SessionRow, 'id' | 'userId' | 'updatedAt'>): Promise<boolean> {
    if (!(await this.release(id))) return false
    const row = await this.#parts.store.sessions.get(id)
    if (row?.updatedAt !== updatedAt || row.runningPromptId !== null) return false
    // A reader who opens it from now on gets its end.
    await this.delete(userId, id)
    return true
  }

  /**
   * For a person who is removed: stop what runs, give shared sessions to the user `handOver`
   * (absent: their shares end), and with `purge` delete every other session. What runs in the
   * background ends with their sandbox. Returns how many it has deleted.
   */
  async endAllOf(userId: string, data: RemovedData, handOver?: string): Promise<number> {
    const { store } = this.#parts
    const running = (await store.sessions.unfinished()).filter((row) => row.userId === userId)
    for (const { id } of running) await (await this.#findReadable(id))?.stopAll()
    if (handOver === undefined) await this.#shares.endAllOf(userId)
    else for (const id of await store.shares.sharedOf(userId)) await this.#handOver(id, handOver)
    this.#shares.recheckUser(userId)
    if (data === 'keep') return 0
    for (let deleted = 0; ;) {
      const some = await store.sessions.list(userId, { limit: AT_ONCE })
      if (some.length === 0) return deleted
      for (const { id } of some) await this.delete(userId, id)
      deleted += some.length
    }
  }

  /** The next prompt runs in the new owner's sandbox: no file of the old one is there. */
  async #handOver(sessionId: string, to: string): Promise<void> {
    const { store } = this.#parts
    const row = await store.sessions.get(sessionId)
    const session = await this.#findReadable(sessionId)
    if (row === undefined) return
    await store.shares.handOver(sessionId, to)
    this.#sessions.forget(sessionId)
    session?.forget('handed over')
    await session?.release()
    this.#shares.forget(sessionId)
    const { title, updatedAt, mode } = row
    const summary = { sessionId, title, updatedAt, mode, running: false, waiting: 0 }
    this.#shares.publish({ userId: to, summary, unsharedFrom: { people: [row.userId], teams: [] } })
  }

  /**
   * Only its log knows its background commands. Where they cannot be ended they end at their
   * greatest age, so it goes all the same.
   */
  async #endJobs({ id: sessionId, userId, log }: Session): Promise<void> {
    const jobs = openJobsOf(log)
    // The sandbox of a removed person goes, and must not be started for this.
    if (jobs.length === 0 || this.#parts.users.isRemoved(userId)) return
    try {
      await this.#parts.jobs.end(userId, jobs)
    } catch (error) {
      const fields = { sessionId, commands: jobs.map(({ command }) => command), error: messageOf(error) }
      this.#parts.log.warn(fields, 'background commands of a deleted session could not be ended')
    }
  }

  /** Undefined also for one that is damaged: nothing of it can run, and it can be removed. */
  async #findReadable(sessionId: string): Promise<Session | undefined> {
    try {
      return await this.#sessions.find(sessionId)
    } catch (error) {
      if (error instanceof StorageError && error.code === 'corrupt') return undefined
      throw error
    }
  }
}
