/**
 * Sessions in memory. The events of each are in a log of its own; all else lives as long as this
 * object.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type SessionEvent, isLive, metaOf } from '@sandlot/shared/chat/events'
import { storableText } from '@sandlot/shared/base/storable-text'
import type { LogRows, Ownership } from '@sandlot/storage/sessions/log'
import type { OutputRows } from '@sandlot/storage/sessions/outputs'
import type { SessionRows } from '@sandlot/storage/sessions/sessions'
import type { SessionRecords } from '@sandlot/storage/sessions/store'
import type { ApprovalRow, Effects, SessionRow } from '@sandlot/storage/tables/records'
import type { SpentReads, SpentTogether, UserSpent } from '@sandlot/storage/usage/usage'
import { DAY_MS, type Together, dayOf } from '@sandlot/storage/usage/usage-sums'
import { notOwner } from '@sandlot/storage/storage-error'
import { effectsOf } from '../session/effects.ts'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { type LogStore, memoryLog, numbered } from './log-store.ts'
import { MemoryOutputs } from './memory-outputs.ts'

interface StoredSession {
  row: SessionRow
  log: LogStore
  epoch: number
  /** Why the log took no more from its owner. Nothing is stored behind a gap. */
  failure: { error: unknown } | undefined
  approvals: Map<string, ApprovalRow>
  /** Calls that have their outcome. */
  ended: Set<string>
}

export class MemoryStore implements SessionRecords {
  readonly #logOf: () => LogStore
  readonly #sessions = new Map<string, StoredSession>()
  readonly #submissions = new Map<string, { sessionId: string; promptId: string }>()
  /** A takeover sees what the earlier owner was storing. */
  readonly #writes = new SerialQueue()

  /** `logOf` gives the log of each new session. */
  constructor(logOf: () => LogStore = memoryLog) {
    this.#logOf = logOf
  }

  readonly usage = new MemoryUsage()
  readonly #outputs = new MemoryOutputs()

  readonly outputs: SessionRecords['outputs'] & Pick<OutputRows, 'get'> = {
    append: async (sessionId, callId, offset, bytes, epoch) => {
      this.#owned(sessionId, epoch)
      return this.#outputs.append(sessionId, callId, offset, bytes)
    },
    get: (...args) => this.#outputs.get(...args),
    missingRoom: () => this.#outputs.missingRoom(),
    read: (...args) => this.#outputs.read(...args),
  }

  readonly sessions: Pick<SessionRows, 'create' | 'get' | 'remove' | 'unfinished'> & {
    list: (userId: string, page?: { waiting?: boolean }) => Promise<SessionRow[]>
  } = {
    create: (...args) => this.#create(...args),
    get: async (id) => {
      const session = this.#sessions.get(id)
      return session && { ...session.row }
    },
    /** All of them; `page` is for stores that have many. */
    list: async (userId, { waiting = false } = {}) => {
      const own = this.#rows().filter((row) => row.userId === userId && (!waiting || row.waiting > 0))
      return own.toSorted((a, b) => b.updatedAt - a.updatedAt)
    },
    remove: async (id) => this.#remove(id),
    unfinished: async () => this.#rows().filter(({ runningPromptId }) => runningPromptId !== null),
  }

  readonly log: LogRows = {
    append: (sessionId, events, effects, epoch) => this.#append(sessionId, events, effects, epoch),
    checkOwner: async (sessionId, epoch) => void this.#owned(sessionId, epoch),
    findSubmission: async (userId, requestId) => this.#submissions.get(keyOf(userId, requestId)),
    read: async (sessionId, after = 0, limit = Infinity) => {
      const events = await this.#sessions.get(sessionId)?.log.read()
      return events?.slice(after, after + limit) ?? []
    },
    takeOver: (sessionId) => this.#takeOver(sessionId),
  }

  readonly approvals: SessionRecords['approvals'] = {
    get: async (sessionId, toolCallId) => {
      const approval = this.#sessions.get(sessionId)?.approvals.get(toolCallId)
      return approval && { ...approval }
    },
  }

  async #create(
    { id, userId, cwd, mode, at }: Parameters<SessionRows['create']>[0],
    events: readonly SessionEvent[] = [],
  ): Promise<SessionRow> {
    if (this.#sessions.has(id)) throw new SandlotError('conflict', `There is a session ${id} already.`)
    const row: SessionRow = {
      id,
      userId,
      cwd,
      title: null,
      mode,
      createdAt: at,
      updatedAt: at,
      lastSeq: 0,
      runningPromptId: null,
      waiting: 0,
    }
    const log = this.#logOf()
    this.#sessions.set(id, {
      row,
      log,
      epoch: 0,
      failure: undefined,
      approvals: new Map(),
      ended: new Set(),
    })
    if (events.length > 0) await this.#append(id, events)
    return { ...row }
  }

  #remove(id: string): void {
    const { row } = this.#sessions.get(id) ?? {}
    if (row === undefined) return
    this.usage.startRun(id, undefined, row.updatedAt)
    this.#sessions.delete(id)
    for (const [key, { sessionId }] of this.#submissions) if (sessionId === id) this.#submissions.delete(key)
    this.#outputs.removeAll(id)
  }

  #rows(): SessionRow[] {
    return [...this.#sessions.values()].map(({ row }) => ({ ...row }))
  }

  #takeOver(sessionId: string): Promise<Ownership> {
    return this.#writes.run(async () => {
      const session = this.#found(sessionId)
      const events = [...(await session.log.read())]
      // The state of a log that is older than this store, and of events that others wrote to it.
      const { userId, lastSeq } = session.row
      for (const event of events.slice(lastSeq))
        this.#note(
          session,
          [event],
          effectsOf([event], { userId, model: '', toolOf: () => '', promptAuthor: () => undefined }),
        )
      session.failure = undefined
      return { epoch: ++session.epoch, events }
    })
  }

  async #append(
    sessionId: string,
    events: readonly SessionEvent[],
    effects: Effects = {},
    epoch?: number,
  ): Promise<SessionEvent[]> {
    if (events.some(isLive)) throw new TypeError('A live event cannot be stored.')
    return this.#writes.run(async () => {
      const session = this.#owned(sessionId, epoch)
      this.#check(session, effects)
      const { lastSeq } = session.row
      const stored = numbered(events, lastSeq)
      try {
        if (stored.length > 0) await session.log.append(stored, lastSeq)
      } catch (error) {
        session.failure = { error }
        throw error
      }
      this.#note(session, stored, effects)
      return stored
    })
  }

  /** Throws what the session's log has thrown since it was taken over. */
  throwFailure(sessionId: string): void {
    const failure = this.#sessions.get(sessionId)?.failure
    if (failure !== undefined) throw failure.error
  }

  #found(sessionId: string): StoredSession {
    const session = this.#sessions.get(sessionId)
    if (session === undefined) throw new SandlotError('not_found', `There is no session ${sessionId}.`)
    return session
  }

  #owned(sessionId: string, epoch: number | undefined): StoredSession {
    const session = this.#found(sessionId)
    if (epoch !== undefined && epoch !== session.epoch) throw notOwner(sessionId)
    if (session.failure !== undefined) throw session.failure.error
    return session
  }

  /** Throws what refuses the whole group. */
  #check(session: StoredSession, { submission, approvalAsked, approvalAnswered, outcome }: Effects): void {
    if (submission !== undefined && this.#submissions.has(keyOf(submission.userId, submission.requestId)))
      throw new SandlotError('conflict', `Request ${submission.requestId} was submitted before.`)
    if (approvalAsked !== undefined && session.approvals.has(approvalAsked.toolCallId))
      throw new SandlotError('conflict', `Approval of ${approvalAsked.toolCallId} was asked before.`)
    if (approvalAnswered !== undefined) {
      const { toolCallId } = approvalAnswered
      const asked = session.approvals.get(toolCallId)
      if (asked === undefined)
        throw new SandlotError('not_found', `No approval of ${toolCallId} was requested.`)
      if (asked.answeredAt !== null)
        throw new SandlotError(
          'conflict',
          `The approval of ${toolCallId} was answered before, by ${asked.by}.`,
        )
    }
    if (outcome !== undefined && session.ended.has(outcome.callId))
      throw new SandlotError('conflict', `Call ${outcome.callId} has its outcome already.`)
  }

  /** The events are in the log: what they change here. */
  #note(session: StoredSession, events: readonly SessionEvent[], effects: Effects): void {
    const { row, approvals } = session
    const latest = events.reduce((at, event) => Math.max(at, metaOf(event).at), 0)
    row.lastSeq += events.length
    row.updatedAt = Math.max(row.updatedAt, latest)
    row.title = effects.title === undefined ? row.title : storableText(effects.title)
    row.mode = effects.mode ?? row.mode
    const { submission, approvalAsked, approvalAnswered, runningPromptId, output, usage, outcome } = effects
    if (submission !== undefined) {
      const { userId, requestId, promptId } = submission
      this.#submissions.set(keyOf(userId, requestId), { sessionId: row.id, promptId })
    }
    if (approvalAsked !== undefined) {
      const unanswered = { answeredAt: null, optionId: null, by: null }
      approvals.set(approvalAsked.toolCallId, { sessionId: row.id, ...approvalAsked, ...unanswered })
    }
    const asked = approvalAnswered && approvals.get(approvalAnswered.toolCallId)
    if (asked !== undefined) Object.assign(asked, approvalAnswered)
    row.waiting = [...approvals.values()].filter(({ answeredAt }) => answeredAt === null).length
    if (runningPromptId !== undefined) {
      row.runningPromptId = runningPromptId
      this.usage.startRun(row.id, runningPromptId === null ? undefined : row.userId, latest)
    }
    if (output !== undefined) this.#outputs.complete(row.id, output)
    if (usage !== undefined) this.usage.record(row.userId, usage)
    if (outcome !== undefined) session.ended.add(outcome.callId)
  }
}

interface Run {
  userId: string
  sessionId: string
  startedAt: number
  endedAt: number | undefined
}

type Usage = NonNullable<Effects['usage']> & { userId: string }

/** Usage of one user. */
class MemoryUsage implements SpentReads {
  readonly #usage: Usage[] = []
  readonly #runs: Run[] = []

  async spentSince(userId: string, at: number, now: number): Promise<UserSpent> {
    const spent: UserSpent = { turns: 0, calls: 0, tokens: 0, cost: 0, unpriced: 0, ms: 0 }
    for (const usage of this.#usage) {
      if (usage.userId !== userId || usage.at < at) continue
      spent.turns += 1
      spent.calls += usage.calls ?? 0
      spent.tokens += usage.input + usage.output
      spent.cost += usage.cost ?? 0
      if (usage.cost === undefined) spent.unpriced += 1
    }
    for (const run of this.#runs) {
      // A clock that was set back must not give anything back.
      if (run.userId === userId) spent.ms += Math.max((run.endedAt ?? now) - Math.max(run.startedAt, at), 0)
    }
    return spent
  }

  /** One user alone has this store. */
  async spentTogether(_of: Together, at: number, now?: number): Promise<SpentTogether> {
    const userId = this.#runs[0]?.userId ?? this.#usage[0]?.userId ?? ''
    const spent = await this.spentSince(userId, dayOf(at) * DAY_MS, now ?? 0)
    return { ...spent, ms: now === undefined ? 0 : spent.ms }
  }

  record(userId: string, usage: NonNullable<Effects['usage']>): void {
    this.#usage.push({ ...usage, userId })
  }

  /** Ends the session's run, and starts the next one unless `userId` is undefined. */
  startRun(sessionId: string, userId: string | undefined, at: number): void {
    for (const run of this.#runs) if (run.sessionId === sessionId) run.endedAt ??= at
    if (userId !== undefined) this.#runs.push({ userId, sessionId, startedAt: at, endedAt: undefined })
  }
}

function keyOf(...ids: [string, string]): string {
  return JSON.stringify(ids)
}
