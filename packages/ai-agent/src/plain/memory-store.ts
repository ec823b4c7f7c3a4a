/**
 * Sessions in memory. The events of each are in a log of its own; all else lives as long as this
 * object.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type SessionEvent, isLive, metaOf } from '@sandlot/shared/chat/events'
import { storableText } from '@sandlot/shared/base/storable-text'
import type { Ownership, SessionRecords, SessionStore } from '@sandlot/storage/sessions/store'
import type { ApprovalRow, Effects, OutputRow, SessionRow } from '@sandlot/storage/tables/records'
import type { SpentTogether, UserSpent } from '@sandlot/storage/usage/usage'
import { DAY_MS, type Together, dayOf } from '@sandlot/storage/usage/usage-sums'
import { notOwner } from '@sandlot/storage/storage-error'
import { effectsOf } from '../session/effects.ts'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { type LogStore, memoryLog, numbered } from './log-store.ts'

/** The most output of one call, in bytes. */
export const MAX_OUTPUT_BYTES = 32 * 1024 * 1024
/** The most output of all calls; the oldest are forgotten first. */
const MAX_BYTES = 2 * MAX_OUTPUT_BYTES

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

interface Output {
  row: OutputRow
  parts: Uint8Array[]
  /** Its bytes had to make room. */
  forgotten: boolean
}

interface Run {
  userId: string
  sessionId: string
  startedAt: number
  endedAt: number | undefined
}

type Usage = NonNullable<Effects['usage']> & { userId: string }

export class MemoryStore
  implements
    SessionRecords,
    Pick<
      SessionStore,
      | 'createSession'
      | 'deleteSession'
      | 'getSession'
      | 'listSessions'
      | 'outputInfo'
      | 'readEvents'
      | 'unfinished'
    >
{
  readonly #logOf: () => LogStore
  readonly #sessions = new Map<string, StoredSession>()
  readonly #submissions = new Map<string, { sessionId: string; promptId: string }>()
  readonly #outputs = new Map<string, Output>()
  #outputBytes = 0
  readonly #usage: Usage[] = []
  readonly #runs: Run[] = []
  /** A takeover sees what the earlier owner was storing. */
  readonly #writes = new SerialQueue()

  /** `logOf` gives the log of each new session. */
  constructor(logOf: () => LogStore = memoryLog) {
    this.#logOf = logOf
  }

  async createSession(
    { id, userId, cwd, mode, at }: Parameters<SessionStore['createSession']>[0],
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
    if (events.length > 0) await this.append(id, events)
    return { ...row }
  }

  async deleteSession(id: string): Promise<void> {
    const { row } = this.#sessions.get(id) ?? {}
    if (row === undefined) return
    this.#endRun(id, row.updatedAt)
    this.#sessions.delete(id)
    for (const [key, { sessionId }] of this.#submissions) if (sessionId === id) this.#submissions.delete(key)
    for (const [key, output] of this.#outputs) {
      if (output.row.sessionId !== id) continue
      this.#forget(output)
      this.#outputs.delete(key)
    }
  }

  async getSession(id: string): Promise<SessionRow | undefined> {
    const session = this.#sessions.get(id)
    return session && { ...session.row }
  }

  /** All of them; `page` is for stores that have many. */
  async listSessions(userId: string, { waiting = false }: { waiting?: boolean } = {}): Promise<SessionRow[]> {
    const rows = [...this.#sessions.values()].map(({ row }) => ({ ...row }))
    const own = rows.filter((row) => row.userId === userId && (!waiting || row.waiting > 0))
    return own.toSorted((a, b) => b.updatedAt - a.updatedAt)
  }

  async unfinished(): Promise<SessionRow[]> {
    const rows = [...this.#sessions.values()].map(({ row }) => ({ ...row }))
    return rows.filter(({ runningPromptId }) => runningPromptId !== null)
  }

  async readEvents(sessionId: string, after = 0, limit = Infinity): Promise<SessionEvent[]> {
    const events = await this.#sessions.get(sessionId)?.log.read()
    return events?.slice(after, after + limit) ?? []
  }

  takeOver(sessionId: string): Promise<Ownership> {
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

  async checkOwner(sessionId: string, epoch: number): Promise<void> {
    this.#owned(sessionId, epoch)
  }

  async append(
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

  async appendOutput(
    sessionId: string,
    callId: string,
    offset: number,
    bytes: Uint8Array,
    epoch?: number,
  ): Promise<undefined> {
    this.#owned(sessionId, epoch)
    const output = this.#outputOf(sessionId, callId)
    // Later output would be at the wrong offset.
    if (output.forgotten) return undefined
    const { storedBytes } = output.row
    if (offset > storedBytes)
      throw new SandlotError('bad_request', `Output of ${callId} ends at ${storedBytes}, not at ${offset}.`)
    // A copy, also of a Buffer: the caller may use its memory again.
    const more = new Uint8Array(bytes.subarray(storedBytes - offset))
    output.parts.push(more)
    output.row.storedBytes += more.length
    output.row.totalBytes = Math.max(output.row.totalBytes, output.row.storedBytes)
    this.#outputBytes += more.length
    for (const oldest of this.#outputs.values()) {
      if (this.#outputBytes <= MAX_BYTES || oldest === output) break
      this.#forget(oldest)
    }
    return undefined
  }

  async readOutput(sessionId: string, callId: string, from: number, to: number): Promise<Uint8Array> {
    const output = this.#outputs.get(keyOf(sessionId, callId))
    if (output === undefined) return new Uint8Array()
    // Joined once: who reads a part reads the next one too.
    if (output.parts.length > 1) output.parts = [new Uint8Array(Buffer.concat(output.parts))]
    return (output.parts[0] ?? new Uint8Array()).slice(from, to)
  }

  async outputInfo(sessionId: string, callId: string): Promise<OutputRow | undefined> {
    const output = this.#outputs.get(keyOf(sessionId, callId))
    return output && { ...output.row }
  }

  missingRoom(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  async findSubmission(
    userId: string,
    requestId: string,
  ): Promise<{ sessionId: string; promptId: string } | undefined> {
    return this.#submissions.get(keyOf(userId, requestId))
  }

  async approval(sessionId: string, toolCallId: string): Promise<ApprovalRow | undefined> {
    const approval = this.#sessions.get(sessionId)?.approvals.get(toolCallId)
    return approval && { ...approval }
  }

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

  #outputOf(sessionId: string, callId: string): Output {
    const key = keyOf(sessionId, callId)
    const known = this.#outputs.get(key)
    if (known !== undefined) return known
    const row = { sessionId, callId, storedBytes: 0, totalBytes: 0, lines: 0, complete: false }
    const output = { row, parts: [], forgotten: false }
    this.#outputs.set(key, output)
    return output
  }

  #forget(output: Output): void {
    this.#outputBytes -= output.parts.reduce((sum, { length }) => sum + length, 0)
    output.parts = []
    output.forgotten = true
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
      this.#endRun(row.id, latest)
      const run = { userId: row.userId, sessionId: row.id, startedAt: latest, endedAt: undefined }
      if (runningPromptId !== null) this.#runs.push(run)
    }
    if (output !== undefined) {
      const { callId, ...counts } = output
      Object.assign(this.#outputOf(row.id, callId).row, counts, { complete: true })
    }
    if (usage !== undefined) this.#usage.push({ ...usage, userId: row.userId })
    if (outcome !== undefined) session.ended.add(outcome.callId)
  }

  #endRun(sessionId: string, at: number): void {
    for (const run of this.#runs) if (run.sessionId === sessionId) run.endedAt ??= at
  }
}

function keyOf(...ids: [string, string]): string {
  return JSON.stringify(ids)
}
