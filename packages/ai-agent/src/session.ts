/**
 * One session: numbers and stores events, joins history and live tail, runs one prompt at a time, decides approvals.
 * Everything that changes the log goes through one queue (`#inTurn`), so that decisions see the log as it is.
 */
import { SandlotError, messageOf } from '@sandlot/shared/errors'
import {
  type Mode,
  type SessionEvent,
  MODES,
  isLive,
  isOutcome,
  makeMeta,
  makeSandlotEvent,
  metaOf,
  sandlotEventOf,
  seqOf,
} from '@sandlot/shared/events'
import type { SessionSummary } from '@sandlot/shared/frames'
import { newId } from '@sandlot/shared/ids'
import type { Effects, SessionRow } from '@sandlot/storage/sessions/store'
import { runPrompt, sentMessage } from './agent-loop.ts'
import { type PromptEnd, promptEndOf, promptThatTook, queuedMessages } from './history.ts'
import { BUG_TEXT, endEvent } from './loop-endings.ts'
import type { EventGroup } from './loop-context.ts'
import type { BatchContext } from './scheduler/batch.ts'
import { Approvals, type PendingApproval } from './session-approvals.ts'
import { effectsOf } from './session-effects.ts'
import { InFlight } from './session-flight.ts'
import type { SessionParts } from './session-parts.ts'
import { type CloseReason, Subscribers, type Subscription } from './session-subscription.ts'
import { titleOf } from './session-title.ts'

export interface PromptOptions {
  /** The message's id, `m_…`, never used before. The prompt that it becomes is called `p_…`. */
  messageId?: string
  /** The same one again is the same prompt. */
  requestId?: string
  whenBusy?: 'steer' | 'queue' | 'refuse'
  /** Nobody can answer an approval: each is denied at once. */
  unattended?: boolean
  /** The highest mode that an administrator lets this user have. */
  modeCeiling?: Mode
}

/** A stored prompt. `done` resolves when the prompt that took the message has ended; it rejects only if the store fails. */
export interface Accepted {
  sessionId: string
  promptId: string
  duplicate: boolean
  done: Promise<PromptEnd>
}

interface Running {
  promptId: string
  unattended: boolean
  stop: AbortController
  /** Made when first asked for. */
  cancels: Map<string, AbortController>
  /** Resolves when the loop has ended or let go. */
  driven: Promise<void>
}

interface Waiter {
  promptId: string
  ended: PromiseWithResolvers<PromptEnd>
}

export class Session {
  readonly id: string
  readonly userId: string
  readonly cwd: string
  readonly #parts: SessionParts
  readonly #changed: (summary: SessionSummary) => void
  readonly #log: SessionEvent[]
  readonly #flight = new InFlight()
  readonly #subscribers = new Subscribers()
  readonly #approvals: Approvals
  readonly #waiters = new Set<Waiter>()
  #mode: Mode
  #modeCeiling: Mode = 'yolo'
  #title: string | null
  #updatedAt: number
  #running: Running | undefined
  #queue: Promise<unknown> = Promise.resolve()
  #queued = 0
  #deleted = false

  /** Load a session from the store. `changed` hears of every change of its line in the list. */
  static async load(
    row: SessionRow,
    parts: SessionParts,
    changed: (summary: SessionSummary) => void,
  ): Promise<Session> {
    const session = new Session(row, await parts.store.readEvents(row.id), parts, changed)
    session.#approvals.startClocks()
    return session
  }

  private constructor(
    row: SessionRow,
    log: SessionEvent[],
    parts: SessionParts,
    changed: (summary: SessionSummary) => void,
  ) {
    this.id = row.id
    this.userId = row.userId
    this.cwd = row.cwd
    this.#mode = row.mode
    this.#title = row.title
    this.#updatedAt = row.updatedAt
    this.#parts = parts
    this.#changed = changed
    this.#log = [...log]
    this.#approvals = new Approvals(parts.now, (toolCallId) => void this.#expire(toolCallId))
    for (const event of log) this.#approvals.note(event)
  }

  // ── Reading ───────────────────────────────────────────────────────────────────────────────────────────

  get mode(): Mode {
    return this.#mode
  }

  /** Number of the last settled event. */
  get seq(): number {
    return seqOf(this.#log.at(-1) ?? makeSandlotEvent({ type: 'gap', after: 0, until: 0 }, {}, 0)) ?? 0
  }

  get running(): boolean {
    return this.#running !== undefined
  }

  /** Nothing runs, reads or waits: the manager may forget this object. */
  get idle(): boolean {
    return this.#running === undefined && this.#subscribers.size === 0 && this.#queued === 0
  }

  /** Settled events in order. */
  get log(): readonly SessionEvent[] {
    return this.#log
  }

  pendingApprovals(): PendingApproval[] {
    return this.#approvals.pending()
  }

  summary(): SessionSummary {
    return {
      sessionId: this.id,
      title: this.#title,
      updatedAt: this.#updatedAt,
      mode: this.#mode,
      running: this.running,
      waiting: this.#approvals.pending().length,
    }
  }

  /** Everything after `after`, what is in flight, then the live tail. */
  subscribe(after: number): Subscription {
    const missed = this.#log.filter((event) => (seqOf(event) ?? 0) > after)
    return this.#subscribers.add([...missed, ...this.#flight.snapshot()], this.seq)
  }

  // ── Prompts ───────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Store a message: as a prompt of its own, or, while one runs, as `whenBusy` says. Resolves when it is stored.
   * Throws `busy`, `conflict` (the request id belongs to a prompt in another session), `not_found` (deleted).
   */
  prompt(text: string, options: PromptOptions = {}): Promise<Accepted> {
    return this.#inTurn(async () => {
      this.#modeCeiling = options.modeCeiling ?? 'yolo'
      const { requestId } = options
      if (requestId !== undefined) {
        const known = await this.#parts.store.findSubmission(this.userId, requestId)
        if (known !== undefined) {
          if (known.sessionId !== this.id) {
            throw new SandlotError('conflict', 'This request id was used for a message in another session.')
          }
          return this.#accepted(known.promptId, true)
        }
      }
      if (this.#running === undefined) return this.#start(text, options)
      if (options.whenBusy === 'refuse') {
        throw new SandlotError(
          'busy',
          'The agent is still working on the message before. Wait for it, or stop it.',
        )
      }
      return this.#enqueue(this.#running.promptId, text, options)
    })
  }

  /** Take up the prompt that an earlier process had begun. Nothing to do when its end is in the log. */
  resume(promptId: string): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#running !== undefined || promptEndOf(this.#log, promptId) !== undefined) return
      const started = this.#log.map(sandlotEventOf).findLast((event) => event?.type === 'prompt_started')
      const unattended = started?.type === 'prompt_started' && started.unattended === true
      this.#launch(promptId, unattended, true)
      await this.#denyWhatNobodyAnswers()
    })
  }

  /**
   * Stop the running prompt. Every call gets its outcome, queued messages stay. Resolves when the Stop has taken
   * effect on everything that waits for the user; the end itself comes as an event.
   */
  async cancel(reason: 'cancelled' | 'interrupted' = 'cancelled'): Promise<void> {
    const before = this.#running
    before?.stop.abort(reason)
    await this.#inTurn(async () => {
      // A prompt that was only being stored when Stop came is meant too; one that began after the stopped one is not.
      const running = before ?? this.#running
      if (running === undefined || running !== this.#running) return
      running.stop.abort(reason)
      for (const { toolCallId } of this.#approvals.pending()) {
        await this.#storeAnswer(toolCallId, { allowed: false, by: 'cancel' })
      }
    })
  }

  /** Stop one call of the running prompt. Nothing happens when it has ended. Throws `not_found`. */
  async cancelCall(callId: string): Promise<void> {
    if (!this.#log.some((event) => event.sessionUpdate === 'tool_call' && event.toolCallId === callId)) {
      throw new SandlotError('not_found', 'There is no such call in this session.')
    }
    const running = this.#running
    if (running === undefined) return
    cancelOf(running, callId).abort('cancelled')
    await this.#inTurn(async () => {
      if (this.#approvals.of(callId).state !== 'pending') return
      await this.#storeAnswer(callId, { allowed: false, by: 'cancel' })
    })
  }

  /** Resolves when no prompt runs. */
  async whenIdle(): Promise<void> {
    while (this.#running !== undefined) await this.#waitFor(this.#running.promptId)
  }

  /** Throws `forbidden` above the ceiling. */
  setMode(mode: Mode, ceiling: Mode = 'yolo'): Promise<void> {
    return this.#inTurn(async () => {
      if (MODES.indexOf(mode) > MODES.indexOf(ceiling)) {
        throw new SandlotError('forbidden', `Your administrator allows no mode above “${ceiling}”.`)
      }
      this.#modeCeiling = ceiling
      if (mode === this.#mode) return
      const meta = makeMeta({}, this.#parts.now())
      await this.#store([{ sessionUpdate: 'current_mode_update', currentModeId: mode, _meta: meta }])
    })
  }

  // ── Approvals ─────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Answer an approval. The first stored answer wins: `answered` is false when there was one, and `by` says whose.
   * Throws `not_found`, `bad_request` (no such option).
   */
  answer(toolCallId: string, optionId: string, reason?: string): Promise<{ answered: boolean; by?: string }> {
    return this.#inTurn(async () => {
      const asked = this.#approvals.find(toolCallId)
      if (asked === undefined) throw new SandlotError('not_found', 'Nobody was asked about this call.')
      if (asked.answer !== undefined) return { answered: false, by: asked.answer.by }
      const option = asked.options.find((known) => known.optionId === optionId)
      if (option === undefined) {
        const known = asked.options.map((one) => one.optionId).join(', ')
        throw new SandlotError(
          'bad_request',
          `“${optionId}” is not an answer to this question; the answers are ${known}.`,
        )
      }
      const allowed = option.kind === 'allow_once' || option.kind === 'allow_always'
      const said = reason === undefined ? {} : { reason }
      try {
        await this.#storeAnswer(toolCallId, { allowed, optionId, by: 'user', ...said })
      } catch (error) {
        if (!(error instanceof SandlotError) || error.code !== 'conflict') throw error
        const row = await this.#parts.store.approval(this.id, toolCallId)
        return { answered: false, ...(row?.by == null ? {} : { by: row.by }) }
      }
      return { answered: true, by: 'user' }
    })
  }

  /** Deny an approval that its only possible answerer will not, or cannot, answer. Nothing happens if it was answered. */
  refuse(toolCallId: string, by: 'cancel' | 'unattended'): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#approvals.of(toolCallId).state !== 'pending') return
      await this.#storeAnswer(toolCallId, { allowed: false, by })
    })
  }

  // ── The end ───────────────────────────────────────────────────────────────────────────────────────────

  /** Close every reader and refuse everything that comes later. The running prompt must have ended. */
  markDeleted(): void {
    this.#deleted = true
    this.forget('deleted')
  }

  /** Resolves when the loop has let go, after the parts' `leaving` was aborted. */
  async left(): Promise<void> {
    this.forget()
    await this.#running?.driven
  }

  /** Let go of clocks and readers; the object is not used again. */
  forget(reason: CloseReason = 'slow'): void {
    this.#approvals.stopClocks()
    this.#subscribers.closeAll(reason)
  }

  // ── Inside ────────────────────────────────────────────────────────────────────────────────────────────

  /** Run after everything that was asked before. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#queued++
    const result = this.#queue.then(async () => {
      if (this.#deleted) throw new SandlotError('not_found', 'This session was deleted.')
      return work()
    })
    const over = (): void => void this.#queued--
    this.#queue = result.then(over, over)
    return result
  }

  async #start(text: string, options: PromptOptions): Promise<Accepted> {
    const { requestId, unattended = false, messageId = newId('m') } = options
    const promptId = promptIdOf(messageId)
    const at = this.#parts.now()
    const started = {
      type: 'prompt_started',
      model: this.#parts.model.name,
      ...(requestId === undefined ? {} : { requestId }),
      ...(unattended ? { unattended } : {}),
    } as const
    // What waited when an earlier prompt was stopped goes first.
    const held = queuedMessages(this.#log).flatMap((message) => sentMessage(message, promptId, at))
    const message: SessionEvent = {
      sessionUpdate: 'user_message_chunk',
      messageId,
      content: { type: 'text', text },
      _meta: makeMeta({ promptId }, at),
    }
    const titled = this.#titleEvents(text, promptId, at)
    await this.#store([makeSandlotEvent(started, { promptId }, at), ...titled, ...held, message])
    this.#launch(promptId, unattended, false)
    return this.#accepted(promptId, false)
  }

  /** The first prompt names the session. */
  #titleEvents(text: string, promptId: string, at: number): SessionEvent[] {
    if (this.#title !== null) return []
    return [{ sessionUpdate: 'session_info_update', title: titleOf(text), _meta: makeMeta({ promptId }, at) }]
  }

  async #enqueue(runningId: string, text: string, options: PromptOptions): Promise<Accepted> {
    const { requestId, messageId = newId('m') } = options
    const as = options.whenBusy === 'queue' ? 'queue' : 'steer'
    const event = makeSandlotEvent(
      { type: 'message_queued', messageId, text, as },
      { promptId: runningId },
      this.#parts.now(),
    )
    const promptId = promptIdOf(messageId)
    const submission =
      requestId === undefined ? {} : { submission: { userId: this.userId, requestId, promptId } }
    await this.#store([event], submission)
    return this.#accepted(promptId, false)
  }

  #accepted(promptId: string, duplicate: boolean): Accepted {
    const done = this.#waitFor(promptId)
    done.catch((error: unknown) => {
      this.#parts.log.warn(
        { sessionId: this.id, promptId, error: messageOf(error) },
        'a prompt could not be finished',
      )
    })
    return { sessionId: this.id, promptId, duplicate, done }
  }

  /** The end of the prompt with this id, or of the one that took the queued message with this id. */
  #endOf(promptId: string): PromptEnd | undefined {
    const taker = promptThatTook(this.#log, messageIdOf(promptId))
    return promptEndOf(this.#log, taker ?? promptId)
  }

  #waitFor(promptId: string): Promise<PromptEnd> {
    const known = this.#endOf(promptId)
    if (known !== undefined) return Promise.resolve(known)
    if (this.#running === undefined) {
      // A queued message that a Stop left waiting: it goes with the next prompt.
      return Promise.resolve({ promptId, stopReason: 'cancelled', reason: 'cancelled', seq: this.seq })
    }
    const ended = Promise.withResolvers<PromptEnd>()
    this.#waiters.add({ promptId, ended })
    return ended.promise
  }

  #tellWaiters(failed?: unknown): void {
    for (const waiter of this.#waiters) {
      const end = this.#endOf(waiter.promptId)
      if (end === undefined && failed === undefined && this.#running !== undefined) continue
      this.#waiters.delete(waiter)
      if (end !== undefined) waiter.ended.resolve(end)
      else if (failed !== undefined) waiter.ended.reject(failed)
      else
        waiter.ended.resolve({
          promptId: waiter.promptId,
          stopReason: 'cancelled',
          reason: 'cancelled',
          seq: this.seq,
        })
    }
  }

  #launch(promptId: string, unattended: boolean, resumed: boolean): void {
    const driven = Promise.resolve()
    const running: Running = { promptId, unattended, stop: new AbortController(), cancels: new Map(), driven }
    this.#running = running
    this.#changed(this.summary())
    running.driven = this.#drive(running, resumed)
  }

  /** Consume the loop: show what is live, store what is settled, before the loop goes on. Never rejects. */
  async #drive(running: Running, resumed: boolean): Promise<void> {
    const { log, leaving, ...parts } = this.#parts
    try {
      const groups = runPrompt({
        ...parts,
        promptId: running.promptId,
        resumed,
        log: () => this.#log,
        signal: running.stop.signal,
        leaving,
        batchContext: (turn) => this.#batchContext(running, turn),
        warn: log.warn.bind(log),
      })
      for await (const group of groups) {
        // The process leaves: what has not been stored never happened. The next start resumes.
        if (leaving.aborted) return
        const [first] = group
        if (first !== undefined && isLive(first)) this.#show(first)
        else await this.#inTurn(() => this.#storeFromLoop(running, group))
      }
    } catch (error) {
      if (leaving.aborted) return
      log.warn(
        { sessionId: this.id, promptId: running.promptId, error: messageOf(error) },
        'the prompt broke off',
      )
      await this.#breakOff(running, error)
    }
  }

  /** A bug or a failing store ended the loop. Say so in the log if that is possible, and to those who wait in any case. */
  async #breakOff(running: Running, cause: unknown): Promise<void> {
    running.stop.abort('interrupted')
    try {
      const end = endEvent(running.promptId, 'error', BUG_TEXT, this.#parts.now())
      await this.#inTurn(() => this.#storeFromLoop(running, [end]))
    } catch (error) {
      this.#parts.log.warn(
        { sessionId: this.id, error: messageOf(error) },
        'the end of a prompt could not be stored',
      )
      this.#running = undefined
      this.#tellWaiters(cause)
    }
  }

  async #storeFromLoop(running: Running, group: EventGroup): Promise<void> {
    const end = group.map(sandlotEventOf).find((event) => event?.type === 'prompt_ended')
    if (end?.type !== 'prompt_ended') {
      await this.#store(group)
      if (group.some((event) => sandlotEventOf(event)?.type === 'approval_asked'))
        await this.#denyWhatNobodyAnswers()
      return
    }
    const stopped = end.reason === 'cancelled' || end.reason === 'interrupted'
    const next = stopped ? undefined : queuedMessages(this.#log)[0]
    if (next === undefined) {
      await this.#store(group)
      this.#running = undefined
    } else {
      const promptId = promptIdOf(next.messageId)
      const at = this.#parts.now()
      const started = makeSandlotEvent(
        { type: 'prompt_started', model: this.#parts.model.name },
        { promptId },
        at,
      )
      await this.#store([...group, started, ...sentMessage(next, promptId, at)])
      this.#launch(promptId, running.unattended, false)
    }
    this.#changed(this.summary())
    this.#tellWaiters()
  }

  /** An approval of an unattended prompt, or of one that is being stopped, is denied at once. */
  async #denyWhatNobodyAnswers(): Promise<void> {
    const running = this.#running
    if (running === undefined) return
    const stopping = running.stop.signal.aborted
    if (!running.unattended && !stopping) return
    for (const { toolCallId } of this.#approvals.pending()) {
      await this.#storeAnswer(toolCallId, { allowed: false, by: stopping ? 'cancel' : 'unattended' })
    }
  }

  async #storeAnswer(
    toolCallId: string,
    answer: { allowed: boolean; by: string; optionId?: string; reason?: string },
  ): Promise<void> {
    const call = this.#log.find(
      (event) => event.sessionUpdate === 'tool_call' && event.toolCallId === toolCallId,
    )
    const { promptId, turn } = call === undefined ? {} : metaOf(call)
    const fields = {
      ...(promptId === undefined ? {} : { promptId }),
      ...(turn === undefined ? {} : { turn }),
    }
    await this.#store([
      makeSandlotEvent({ type: 'approval_answered', toolCallId, ...answer }, fields, this.#parts.now()),
    ])
  }

  async #expire(toolCallId: string): Promise<void> {
    try {
      await this.#inTurn(async () => {
        if (this.#approvals.of(toolCallId).state !== 'pending') return
        await this.#storeAnswer(toolCallId, { allowed: false, by: 'expiry' })
      })
    } catch (error) {
      this.#parts.log.warn(
        { sessionId: this.id, toolCallId, error: messageOf(error) },
        'an approval could not expire',
      )
    }
  }

  /** Store settled events with what they change, fold them, show them. Only inside `#inTurn`. */
  async #store(events: EventGroup, more: Effects = {}): Promise<void> {
    const { store, leaving, model } = this.#parts
    if (leaving.aborted) throw new SandlotError('not_ready', 'The agent is shutting down.')
    const context = {
      userId: this.userId,
      model: model.name,
      toolOf: (id: string) => this.#approvals.nameOf(id),
    }
    const stored = await store.append(this.id, events, { ...effectsOf(events, context), ...more })
    for (const event of stored) {
      this.#log.push(event)
      this.#flight.settle(event)
      this.#approvals.note(event)
      this.#updatedAt = metaOf(event).at
      if (event.sessionUpdate === 'current_mode_update') this.#mode = event.currentModeId
      if (event.sessionUpdate === 'session_info_update' && typeof event.title === 'string')
        this.#title = event.title
      this.#subscribers.send(event)
    }
    this.#approvals.startClocks()
    if (stored.some(changesSummary)) this.#changed(this.summary())
  }

  #show(event: SessionEvent): void {
    this.#flight.show(event)
    this.#subscribers.send(event)
  }

  #batchContext(running: Running, turn: number): BatchContext {
    const { store, sandbox, leaving, log } = this.#parts
    return {
      sessionId: this.id,
      userId: this.userId,
      promptId: running.promptId,
      turn,
      signal: AbortSignal.any([running.stop.signal, leaving]),
      cancelSignal: (callId) => cancelOf(running, callId).signal,
      mode: () => lower(this.#mode, this.#modeCeiling),
      sandbox: (signal) => sandbox(this.userId, signal),
      approval: (callId) => this.#approvals.of(callId),
      allowedForSession: (name) => this.#approvals.allowedForSession(name),
      previousAttempt: (callId) => this.#previousAttempt(callId),
      announced: (callId) =>
        this.#log.some((event) => event.sessionUpdate === 'tool_call' && event.toolCallId === callId),
      appendOutput: (callId, offset, bytes) => store.appendOutput(this.id, callId, offset, bytes),
      readOutput: (callId, from, to) => store.readOutput(this.id, callId, from, to),
      log,
    }
  }

  #previousAttempt(callId: string): { n: number; boot: string } | undefined {
    const attempts = this.#log.flatMap((event) =>
      event.sessionUpdate === 'tool_call_update' && event.toolCallId === callId && !isOutcome(event)
        ? [metaOf(event).attempt]
        : [],
    )
    return attempts.findLast((attempt) => attempt !== undefined)
  }
}

/** A message becomes the prompt of the same name, so that the prompt's id is known while it waits. */
function promptIdOf(messageId: string): string {
  return messageId.replace(/^m_/, 'p_')
}

function messageIdOf(promptId: string): string {
  return promptId.replace(/^p_/, 'm_')
}

function cancelOf(running: Running, callId: string): AbortController {
  let controller = running.cancels.get(callId)
  if (controller === undefined) {
    controller = new AbortController()
    running.cancels.set(callId, controller)
  }
  return controller
}

function lower(a: Mode, b: Mode): Mode {
  return MODES.indexOf(a) <= MODES.indexOf(b) ? a : b
}

function changesSummary(event: SessionEvent): boolean {
  if (event.sessionUpdate === 'current_mode_update') return true
  if (event.sessionUpdate === 'session_info_update' && typeof event.title === 'string') return true
  const type = sandlotEventOf(event)?.type
  return type === 'approval_asked' || type === 'approval_answered'
}
