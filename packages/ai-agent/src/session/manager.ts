/** All sessions by id: whose they are, which are loaded, which prompts a start takes up again. */
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { RunningPrompt } from '@sandlot/shared/admin/overview'
import type { Author } from '@sandlot/shared/chat/shares'
import { newId } from '@sandlot/shared/base/ids'
import type { ChatMarks, Project } from '@sandlot/shared/chat/chats'
import { secretName } from '@sandlot/shared/account/secrets'
import { noProject } from '@sandlot/storage/shares/chats'
import { toSessionSummary } from '@sandlot/storage/tables/rows'
import type { SessionRow } from '@sandlot/storage/tables/records'
import { forkedLog, type ForkPoint } from './fork.ts'
import { allowedModels, choose, modelsOf } from '../loop/model-choice.ts'
import { LoadedSessions } from './loaded.ts'
import { RuleAdmin } from './rule-admin.ts'
import { WORKSPACE } from '../loop/system-prompt.ts'
import type { Session } from './session.ts'
import type { SessionParts } from './parts.ts'
import type { Accepted, PromptOptions } from './intake.ts'
import {
  type Access,
  type Actor,
  type Right,
  accessTo,
  authorOf,
  onBehalfOf,
  requireRight,
} from './access.ts'
import { SessionRemoval } from './removal.ts'
import { SessionShares } from './shares.ts'

/** Sessions on one page of the list. */
const PAGE_SIZE = 100

interface NewSession {
  userId: string
  /** Absolute. */
  cwd: string
  mode: Mode
  /** Chosen by the caller; absent: a new one. */
  sessionId?: string
  /** Absent: the deployment's own. */
  model?: string
  thoughtLevel?: string
  /** Id of the user's project that it is in. */
  project?: string
}

export class SessionManager {
  /** Everybody's and people's own rules, to look at and to change. */
  readonly rules: RuleAdmin
  /** With whom sessions are shared. */
  readonly shares: SessionShares
  /** Removal of sessions. */
  readonly removal: SessionRemoval
  readonly #parts: SessionParts
  readonly #sessions: LoadedSessions
  readonly #ending = new AbortController()

  constructor(parts: SessionParts) {
    this.#parts = parts
    const ending = this.#ending.signal
    this.#sessions = new LoadedSessions(
      { ...parts, ending },
      (userId, summary) => this.shares.publish({ userId, summary }),
      undefined,
      async (session) => {
        // Authors of queued messages may have lost their share while no process ran.
        if (session.queuedAuthors.length > 0) await this.shares.recheck(session)
      },
    )
    this.rules = new RuleAdmin(parts)
    this.shares = new SessionShares(parts, this.#sessions)
    this.removal = new SessionRemoval(parts, this.#sessions, this.shares)
  }

  /** Lines on one page of `list`; the last page has fewer. */
  get pageSize(): number {
    return PAGE_SIZE
  }

  /**
   * Throws `conflict` when the id exists, for any user, `bad_request` for a model that there is
   * not, and `not_owner`.
   */
  async create({ userId, cwd, mode, sessionId, project, ...chosen }: NewSession): Promise<Session> {
    const { store, now, models: all } = this.#parts
    if (this.#isRemoved(userId)) throw new SandlotError('forbidden', 'This account was removed.')
    await this.#parts.ownership.claim(userId)
    const models = allowedModels(all, this.#parts.users.modelsOf(userId))
    const choice = choose({ model: models.model.name }, chosen, models)
    const at = now()
    const isDefault = choice.model === all.model.name && choice.thoughtLevel === undefined
    // With the row, in one transaction: the session is never found without its choices.
    const first = isDefault ? [] : [makeSandlotEvent({ type: 'model_chosen', ...choice }, {}, at)]
    const row = await store.sessions.create(
      { id: sessionId ?? newId('s'), userId, cwd, mode, at, project },
      first,
    )
    const session = await this.#sessions.loadAndResume(row)
    this.shares.publish({ userId, summary: session.summary() })
    return session
  }

  /**
   * A new session of this user, with what their tools need to act for them: secrets by name, which
   * are sealed and kept for all of their sessions. Throws `conflict`, and what `UserSecrets.set`
   * throws; then nothing was created.
   */
  async createSession(
    userId: string,
    credentials: Readonly<Record<string, string>> = {},
    { cwd = WORKSPACE, mode = 'auto-edit', ...chosen }: Partial<Omit<NewSession, 'userId'>> = {},
  ): Promise<Session> {
    const { secrets } = this.#parts.calls
    const names = Object.keys(credentials)
    for (const name of names) {
      if (!secretName.safeParse(name).success)
        throw new SandlotError('bad_request', `The secret “${name}” cannot be kept: ${NAME_HELP}.`)
    }
    for (const name of names) await secrets.set(userId, name, credentials[name])
    return this.create({ userId, cwd, mode, ...chosen })
  }

  /** This user's session. Throws `not_found`, also for another user's. */
  async get(userId: string, sessionId: string): Promise<Session> {
    const session = this.#isRemoved(userId) ? undefined : await this.#sessions.find(sessionId)
    if (session === undefined || session.userId !== userId) {
      throw new SandlotError('not_found', 'There is no such chat.')
    }
    return session
  }

  /**
   * The session as this user sees it, with what they may do in it. Throws `not_found` when they do
   * not see it, `forbidden` when they see it without this right.
   */
  async open(who: Actor, sessionId: string, right: Right): Promise<{ session: Session; access: Access }> {
    const session = this.#isRemoved(who.id) ? undefined : await this.#sessions.find(sessionId)
    const { store, now } = this.#parts
    const access = session === undefined ? undefined : await accessTo(store, session, who, now())
    if (session === undefined || access === undefined)
      throw new SandlotError('not_found', 'There is no such chat.')
    requireRight(access, right)
    return { session, access }
  }

  /** `prompt`, by a user with whom the session may be shared. Throws the errors of `open`. */
  async promptBy(who: Actor, sessionId: string, text: string, options: PromptOptions): Promise<Accepted> {
    const { requestId } = options
    const known =
      requestId === undefined ? undefined : await this.#parts.store.log.findSubmission(who.id, requestId)
    for (let again = false; ; again = true) {
      const { session, access } = await this.open(who, known?.sessionId ?? sessionId, 'take_part')
      try {
        return await session.prompt(text, {
          ...options,
          author: authorOf(who),
          onBehalf: onBehalfOf(who, access),
        })
      } catch (error) {
        // Another agent had it in between. Nothing of this message was stored here.
        if (!session.lost || again) throw error
      }
    }
  }

  /**
   * Store a message in a session. A request id that was used before answers with that prompt, in
   * whatever session of the user it is.
   */
  prompt(userId: string, sessionId: string, text: string, options: PromptOptions): Promise<Accepted> {
    return this.promptBy({ id: userId }, sessionId, text, options)
  }

  /**
   * Newest first, of all folders or of this one. `before`: the `updatedAt` of the page before's
   * last line.
   */
  async list(userId: string, before?: number, cwd?: string): Promise<SessionRow[]> {
    return this.#parts.store.sessions.list(userId, {
      limit: PAGE_SIZE,
      before,
      cwd,
    })
  }

  /**
   * Go on from a prompt of a session in a new one, whose id it answers with. Throws `not_found`,
   * `busy` (after a prompt that has not ended), `conflict` (the new id exists).
   */
  async fork(userId: string, sessionId: string, point: ForkPoint, newSessionId?: string): Promise<Session> {
    const { store, now } = this.#parts
    const source = await this.get(userId, sessionId)
    const id = newSessionId ?? newId('s')
    const { title, mode } = source.summary()
    const fork = { id, userId, cwd: source.cwd, mode, title, at: now() }
    const row = await store.sessions.fork(sessionId, fork, forkedLog(source.log, point, id))
    const project = await store.chats.projectOf(userId, sessionId)
    if (project !== undefined)
      await store.chats.mark(userId, { sessionIds: [id], project: project.id }, now())
    const session = await this.#sessions.loadAndResume(row)
    this.shares.publish({ userId, summary: session.summary() })
    return session
  }

  /**
   * Changes this user's marks on chats that they see; their lists change. Throws `not_found`,
   * `forbidden` (another's chat in a project).
   */
  async mark(who: Actor, marks: ChatMarks): Promise<void> {
    const { store, now } = this.#parts
    const rows: SessionRow[] = []
    for (const id of marks.sessionIds) {
      const row = await store.sessions.get(id)
      if (row === undefined || (await accessTo(store, row, who, now())) === undefined)
        throw new SandlotError('not_found', 'There is no such chat.')
      if (typeof marks.project === 'string' && row.userId !== who.id)
        throw new SandlotError('forbidden', 'Only chats of your own can be in your projects.')
      rows.push(row)
    }
    await store.chats.mark(who.id, marks, now())
    for (const row of rows) {
      const summary = (await this.#sessions.peek(row.id))?.summary() ?? toSessionSummary(row)
      this.shares.publish({ userId: row.userId, summary })
    }
  }

  /** The name, where this user's sessions may choose it. */
  allowedModel(userId: string, name: string | null | undefined): string | undefined {
    const models = modelsOf(allowedModels(this.#parts.models, this.#parts.users.modelsOf(userId)))
    return models.find((model) => model.name === name)?.name
  }

  /** Throws `not_found`. */
  async project(userId: string, id: string): Promise<Project> {
    const found = (await this.#parts.store.chats.projects(userId)).find((one) => one.id === id)
    if (found === undefined) throw noProject()
    return found
  }

  /**
   * Every prompt that runs or waits for its turn, the oldest first. `userId`: who asks; only of
   * theirs it says which session it is.
   */
  async runningPrompts(userId: string): Promise<RunningPrompt[]> {
    const queued = new Map(this.#parts.promptQueue.view().map(({ promptId, wait }) => [promptId, wait]))
    return (await this.#sessions.all())
      .flatMap((session) => {
        const prompt = session.runningPrompt
        if (prompt === undefined) return []
        const line = queued.get(prompt.promptId)
        const waits = line === undefined ? prompt : { ...prompt, doing: 'line' as const, line }
        if (session.userId !== userId) return [waits]
        return [{ ...waits, sessionId: session.id, title: session.summary().title }]
      })
      .toSorted((a, b) => (a.line?.place ?? 0) - (b.line?.place ?? 0) || a.startedAt - b.startedAt)
  }

  /** Throws `not_found` when it does not run any more. */
  async stopPrompt(promptId: string, administrator: Author): Promise<void> {
    for (const session of await this.#sessions.all())
      if (session.runningPrompt?.promptId === promptId) return session.cancelPrompt(promptId, administrator)
    throw new SandlotError('not_found', 'This prompt has ended.')
  }

  /** Stop what runs in it. The session stays. Throws `not_found`. */
  async close(userId: string, sessionId: string): Promise<Session> {
    const session = await this.get(userId, sessionId)
    await session.stopAll()
    return session
  }

  /**
   * Load every session with an unfinished prompt of an earlier process, which resumes it. Returns
   * how many. One that cannot be read is logged.
   */
  resumeUnfinished(): Promise<number> {
    return this.#loadUnfinished()
  }

  /** `resumeUnfinished`, of these users, also sessions released here since. */
  resumeOf(userIds: ReadonlySet<string>): Promise<number> {
    return this.#loadUnfinished(userIds)
  }

  /** See `LoadedSessions.releaseOf`. */
  releaseOf(userId: string): Promise<void> {
    return this.#sessions.releaseOf(userId)
  }

  /** A loaded session continues its prompt, or ends it once `#ending` has aborted. */
  async #loadUnfinished(userIds?: ReadonlySet<string>): Promise<number> {
    let loaded = 0
    for (const { id, userId } of await this.#parts.store.sessions.unfinished(userIds)) {
      // The removal stops it when it continues.
      if (this.#isRemoved(userId)) continue
      try {
        if ((await this.#sessions.find(id)) !== undefined) loaded++
      } catch (error) {
        this.#parts.log.warn({ sessionId: id, error: messageOf(error) }, 'a prompt could not be resumed')
      }
    }
    return loaded
  }

  /**
   * End every prompt that an earlier process had begun, without another request or call of any.
   * Returns how many; all have ended when `interruptAll` has resolved. No prompt runs in this
   * manager afterwards.
   */
  endUnfinished(): Promise<number> {
    this.#ending.abort()
    return this.#loadUnfinished()
  }

  /**
   * End every running prompt with reason `interrupted`. Resolves or rejects when all have ended, or
   * could not be.
   */
  async interruptAll(): Promise<void> {
    const sessions = await this.#sessions.all()
    const ended = await Promise.allSettled(sessions.map((session) => session.stopAll('interrupted')))
    const failed = ended.find((one) => one.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  /** Release every session, after the parts' `leaving` was aborted: nothing is stored any more. */
  async leave(): Promise<void> {
    const sessions = await this.#sessions.all()
    await Promise.all(sessions.map((session) => session.left()))
    this.#sessions.clear()
    this.shares.end()
  }

  #isRemoved(userId: string): boolean {
    return this.#parts.users.isRemoved(userId)
  }
}

const NAME_HELP = 'a name is letters, digits, _ . -, at most 128, not a digit first'
