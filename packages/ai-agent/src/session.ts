/**
 * One session: runs one prompt at a time, takes messages that come meanwhile, decides approvals. Everything that changes
 * the log goes through one queue, so that decisions see the log as it is.
 */
import { SandlotError, messageOf } from '@sandlot/shared/errors'
import {
  type Mode,
  type SessionEvent,
  MODES,
  isLive,
  makeMeta,
  makeSandlotEvent,
  metaOf,
  sandlotEventOf,
} from '@sandlot/shared/events'
import type { SessionSummary } from '@sandlot/shared/frames'
import { newId } from '@sandlot/shared/ids'
import type { Effects, SessionRow } from '@sandlot/storage/sessions/store'
import { runPrompt } from './agent-loop.ts'
import { type PromptEnd, queuedMessages, unfinishedPrompt } from './history.ts'
import type { EventGroup } from './loop-context.ts'
import { BUG_TEXT, endEvent, missingOutcomes } from './loop-endings.ts'
import { PromptWaiters } from './prompt-waiters.ts'
import { SerialQueue } from './serial-queue.ts'
import { Approvals, type PendingApproval } from './session-approvals.ts'
import { Running, batchContext } from './session-batch.ts'
import { Journal } from './session-journal.ts'
import { promptIdOf, promptStarted, queuedMessage, sentMessage, userMessage } from './session-messages.ts'
import type { SessionParts } from './session-parts.ts'
import type { CloseReason, Subscription } from './session-subscription.ts'
import { titleOf } from './session-title.ts'
import type { ApprovalAnswer } from './tools/tool.ts'

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

export class Session {
  readonly id: string
  readonly userId: string
  readonly cwd: string
  readonly #parts: SessionParts
  readonly #changed: (summary: SessionSummary) => void
  readonly #approvals: Approvals
  readonly #journal: Journal
  readonly #queue = new SerialQueue()
  readonly #waiters = new PromptWaiters()
  #modeCeiling: Mode = 'yolo'
  #running: Running | undefined
  #deleted = false

  /** Load a session from the store. `changed` hears of every change of its line in the list. */
  static async load(
    row: SessionRow,
    parts: SessionParts,
    changed: (summary: SessionSummary) => void,
  ): Promise<Session> {
    return new Session(row, await parts.store.readEvents(row.id), parts, changed)
  }

  private constructor(
    row: SessionRow,
    events: readonly SessionEvent[],
    parts: SessionParts,
    changed: (summary: SessionSummary) => void,
  ) {
    this.id = row.id
    this.userId = row.userId
    this.cwd = row.cwd
    this.#parts = parts
    this.#changed = changed
    this.#approvals = new Approvals(parts.now, (toolCallId) => void this.#expire(toolCallId))
    this.#journal = new Journal(row, events, this.#approvals, parts)
  }

  // ── Reading ───────────────────────────────────────────────────────────────────────────────────────────

  get mode(): Mode {
    return this.#journal.mode
  }

  /** Number of the last settled event. */
  get seq(): number {
    return this.#journal.seq
  }

  /** Settled events in order. */
  get log(): readonly SessionEvent[] {
    return this.#journal.events
  }

  get running(): boolean {
    return this.#running !== undefined
  }

  /** Nothing runs, reads or waits: the manager may forget this object. */
  get idle(): boolean {
    return this.#running === undefined && this.#journal.readers === 0 && this.#queue.size === 0
  }

  pendingApprovals(): PendingApproval[] {
    return this.#approvals.pending()
  }

  summary(): SessionSummary {
    const { title, updatedAt, mode } = this.#journal
    const waiting = this.#approvals.pending().length
    return { sessionId: this.id, title, updatedAt, mode, running: this.running, waiting }
  }

  /** Everything after `after`, what is in flight, then the live tail. */
  subscribe(after: number): Subscription {
    return this.#journal.subscribe(after)
  }

  // ── Prompts ───────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Store a message: as a prompt of its own, or, while one runs, as `whenBusy` says. Resolves when it is stored.
   * Throws `busy`, `conflict` (the request id belongs to a prompt in another session), `not_found` (deleted).
   */
  prompt(text: string, options: PromptOptions = {}): Promise<Accepted> {
    return this.#inTurn(async () => {
      this.#modeCeiling = options.modeCeiling ?? 'yolo'
      await this.#takeUp()
      const known = await this.#submitted(options.requestId)
      if (known !== undefined) return this.#accepted(known, true)
      if (this.#running === undefined) return this.#start(text, options)
      if (options.whenBusy === 'refuse') {
        throw new SandlotError('busy', 'The agent is still at work here. Wait until it is done, or stop it.')
      }
      return this.#enqueue(this.#running.promptId, text, options)
    })
  }

  /** Take up the prompt that was begun and has no end. Nothing to do when there is none. */
  resume(): Promise<void> {
    return this.#inTurn(() => this.#takeUp())
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
      if (reason === 'cancelled') await this.#noteStop(running)
      await this.#denyWhatNobodyAnswers()
    })
  }

  /** Stop whatever runs, also what begins while it is being stopped. Resolves when nothing runs. */
  async stopAll(reason: 'cancelled' | 'interrupted' = 'cancelled'): Promise<void> {
    for (;;) {
      await this.cancel(reason)
      const running = this.#running
      if (running === undefined) return
      if (running.stop.signal.aborted) await this.#waiters.wait(running.promptId, this.#state())
    }
  }

  /** Stop one call of the running prompt. Nothing happens when it has ended. Throws `not_found`. */
  async cancelCall(callId: string): Promise<void> {
    if (!this.log.some((event) => event.sessionUpdate === 'tool_call' && event.toolCallId === callId)) {
      throw new SandlotError('not_found', 'There is no such call in this session.')
    }
    if (this.#running === undefined) return
    this.#running.cancelOf(callId).abort('cancelled')
    await this.refuse(callId, 'cancel')
  }

  /** Resolves when no prompt runs. */
  async whenIdle(): Promise<void> {
    while (this.#running !== undefined) await this.#waiters.wait(this.#running.promptId, this.#state())
  }

  /** Throws `forbidden` above the ceiling. */
  setMode(mode: Mode, ceiling: Mode = 'yolo'): Promise<void> {
    return this.#inTurn(async () => {
      if (MODES.indexOf(mode) > MODES.indexOf(ceiling)) {
        throw new SandlotError('forbidden', `Your administrator allows no mode above “${ceiling}”.`)
      }
      this.#modeCeiling = ceiling
      if (mode === this.mode) return
      const _meta = makeMeta({}, this.#parts.now())
      await this.#store([{ sessionUpdate: 'current_mode_update', currentModeId: mode, _meta }])
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
        throw new SandlotError('bad_request', `“${optionId}” is no answer here; the answers are ${known}.`)
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

  /** Deny an approval that nobody will answer. Nothing happens if it was answered, or not asked. */
  refuse(toolCallId: string, by: 'cancel' | 'unattended' | 'expiry'): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#approvals.of(toolCallId).state !== 'pending') return
      await this.#storeAnswer(toolCallId, { allowed: false, by })
    })
  }

  // ── The end ───────────────────────────────────────────────────────────────────────────────────────────

  /** Stop everything, then close every reader and refuse what comes later. */
  async endForGood(): Promise<void> {
    while (!this.#deleted) {
      await this.stopAll()
      await this.#inTurn(async () => {
        this.#deleted = this.#running === undefined
      })
    }
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
    this.#journal.closeReaders(reason)
  }

  // ── Starting and queueing ─────────────────────────────────────────────────────────────────────────────

  /** The prompt that was submitted under this request id. Throws `conflict` if it is in another session. */
  async #submitted(requestId: string | undefined): Promise<string | undefined> {
    if (requestId === undefined) return undefined
    const known = await this.#parts.store.findSubmission(this.userId, requestId)
    if (known === undefined || known.sessionId === this.id) return known?.promptId
    throw new SandlotError('conflict', 'This request id was used for a message in another session.')
  }

  /** After a restart, and after a store that failed had broken a prompt off in the middle. */
  async #takeUp(): Promise<void> {
    const begun = this.#running === undefined ? unfinishedPrompt(this.log) : undefined
    if (begun === undefined) return
    this.#launch(begun.promptId, begun.unattended, true, begun.stopped)
    await this.#denyWhatNobodyAnswers()
  }

  async #start(text: string, options: PromptOptions): Promise<Accepted> {
    const { requestId, unattended = false, messageId = newId('m') } = options
    const promptId = promptIdOf(messageId)
    const at = this.#parts.now()
    const title: SessionEvent[] =
      this.#journal.title === null
        ? [
            {
              sessionUpdate: 'session_info_update',
              title: titleOf(text),
              _meta: makeMeta({ promptId }, at),
            },
          ]
        : []
    await this.#store([
      promptStarted(messageId, { model: this.#parts.model.name, requestId, unattended }, at),
      ...title,
      // What waited when an earlier prompt was stopped goes first.
      ...queuedMessages(this.log).flatMap((message) => sentMessage(message, promptId, at)),
      userMessage(messageId, text, promptId, at),
    ])
    this.#launch(promptId, unattended, false)
    return this.#accepted(promptId, false)
  }

  async #enqueue(runningId: string, text: string, options: PromptOptions): Promise<Accepted> {
    const { requestId, unattended = false, messageId = newId('m') } = options
    const as = options.whenBusy === 'queue' ? 'queue' : 'steer'
    const promptId = promptIdOf(messageId)
    const submission =
      requestId === undefined ? {} : { submission: { userId: this.userId, requestId, promptId } }
    const message = { messageId, text, as, ...(unattended ? { unattended } : {}) } as const
    await this.#store([queuedMessage(message, runningId, this.#parts.now())], submission)
    return this.#accepted(promptId, false)
  }

  #accepted(promptId: string, duplicate: boolean): Accepted {
    const done = this.#waiters.wait(promptId, this.#state())
    done.catch((error: unknown) => {
      const fields = { sessionId: this.id, promptId, error: messageOf(error) }
      this.#parts.log.warn(fields, 'a prompt could not be finished')
    })
    return { sessionId: this.id, promptId, duplicate, done }
  }

  // ── Running ───────────────────────────────────────────────────────────────────────────────────────────

  #launch(promptId: string, unattended: boolean, resumed: boolean, stopped = false): void {
    const running = new Running(promptId, unattended)
    if (stopped) running.stop.abort('cancelled')
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
        log: () => this.log,
        signal: running.stop.signal,
        leaving,
        batchContext: (turn) =>
          batchContext({
            sessionId: this.id,
            userId: this.userId,
            running,
            turn,
            events: this.log,
            approvals: this.#approvals,
            mode: () => lower(this.mode, this.#modeCeiling),
            parts: this.#parts,
          }),
        warn: (fields, message) => log.warn({ sessionId: this.id, ...fields }, message),
      })
      for await (const group of groups) {
        // The process leaves: what has not been stored never happened. The next start resumes.
        if (leaving.aborted) return
        const [first] = group
        if (first !== undefined && isLive(first)) this.#journal.show(first)
        else await this.#inTurn(() => this.#storeFromLoop(group))
      }
    } catch (error) {
      if (leaving.aborted) return
      const fields = { sessionId: this.id, promptId: running.promptId, error: messageOf(error) }
      log.warn(fields, 'the prompt broke off')
      await this.#breakOff(running, error)
    }
  }

  /** A bug or a failing store ended the loop. Say so in the log if that is possible, and to those who wait in any case. */
  async #breakOff(running: Running, cause: unknown): Promise<void> {
    running.stop.abort('interrupted')
    try {
      const at = this.#parts.now()
      await this.#inTurn(async () => {
        for (const lost of missingOutcomes(this.log, running.promptId, false, at)) await this.#store([lost])
        await this.#storeFromLoop([endEvent(running.promptId, 'error', BUG_TEXT, at)])
      })
    } catch (error) {
      const fields = { sessionId: this.id, promptId: running.promptId, error: messageOf(error) }
      this.#parts.log.warn(fields, 'the end of a prompt could not be stored')
      this.#running = undefined
      this.#waiters.tell(this.#state(), cause)
    }
  }

  async #storeFromLoop(group: EventGroup): Promise<void> {
    const end = group.map(sandlotEventOf).find((event) => event?.type === 'prompt_ended')
    if (end?.type !== 'prompt_ended') {
      await this.#store(group)
      const asked = group.some((event) => sandlotEventOf(event)?.type === 'approval_asked')
      if (asked) await this.#denyWhatNobodyAnswers()
      return
    }
    const stopped = end.reason === 'cancelled' || end.reason === 'interrupted'
    const next = stopped ? undefined : queuedMessages(this.log)[0]
    if (next === undefined) {
      await this.#store(group)
      this.#running = undefined
      this.#changed(this.summary())
    } else {
      // In the same transaction: a crash in between would leave a message waiting for nothing.
      const promptId = promptIdOf(next.messageId)
      const at = this.#parts.now()
      const { unattended = false } = next
      const started = promptStarted(next.messageId, { model: this.#parts.model.name, unattended }, at)
      await this.#store([...group, started, ...sentMessage(next, promptId, at)])
      this.#launch(promptId, unattended, false)
    }
    this.#waiters.tell(this.#state())
  }

  /** In the log, once, so that a process that ends before the prompt does not let the next one go on with it. */
  async #noteStop({ promptId }: Running): Promise<void> {
    if (unfinishedPrompt(this.log)?.stopped === true) return
    await this.#store([makeSandlotEvent({ type: 'stop_asked' }, { promptId }, this.#parts.now())])
  }

  /** An approval of an unattended prompt, or of one that is being stopped, is denied at once. */
  async #denyWhatNobodyAnswers(): Promise<void> {
    const stopping = this.#running?.stop.signal.aborted === true
    if (!stopping && this.#running?.unattended !== true) return
    for (const { toolCallId } of this.#approvals.pending()) {
      await this.#storeAnswer(toolCallId, { allowed: false, by: stopping ? 'cancel' : 'unattended' })
    }
  }

  // ── Storing ───────────────────────────────────────────────────────────────────────────────────────────

  /** Run after everything that was asked before. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      if (this.#deleted) throw new SandlotError('not_found', 'This session was deleted.')
      return work()
    })
  }

  /** Only inside `#inTurn`. */
  async #store(events: EventGroup, more: Effects = {}): Promise<void> {
    if (await this.#journal.append(events, more)) this.#changed(this.summary())
  }

  async #storeAnswer(toolCallId: string, answer: ApprovalAnswer): Promise<void> {
    const call = this.log.find(
      (event) => event.sessionUpdate === 'tool_call' && event.toolCallId === toolCallId,
    )
    const { promptId, turn } = call === undefined ? {} : metaOf(call)
    const fields = {
      ...(promptId === undefined ? {} : { promptId }),
      ...(turn === undefined ? {} : { turn }),
    }
    const event = { type: 'approval_answered', toolCallId, ...answer } as const
    await this.#store([makeSandlotEvent(event, fields, this.#parts.now())])
  }

  async #expire(toolCallId: string): Promise<void> {
    try {
      await this.refuse(toolCallId, 'expiry')
    } catch (error) {
      const fields = { sessionId: this.id, toolCallId, error: messageOf(error) }
      this.#parts.log.warn(fields, 'an approval could not expire')
    }
  }

  #state(): { events: readonly SessionEvent[]; seq: number; running: boolean } {
    return { events: this.log, seq: this.seq, running: this.running }
  }
}

function lower(a: Mode, b: Mode): Mode {
  return MODES.indexOf(a) <= MODES.indexOf(b) ? a : b
}
