/**
 * One session: runs one prompt at a time, queues messages that arrive during it, decides approvals.
 * Everything that changes the log goes through one queue, so that decisions are made on the current
 * log.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type Mode, MODES } from '@sandlot/shared/chat/mode'
import {
  type SessionEvent,
  makeSandlotEvent,
  isAnnounced,
  isOutcome,
  metaOf,
  sandlotEventOf,
} from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { RunningPrompt } from '@sandlot/shared/admin/overview'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import type { Author, NewComment } from '@sandlot/shared/chat/shares'
import type { Ownership } from '@sandlot/storage/sessions/log'
import type { CreatedSession } from '@sandlot/storage/sessions/sessions'
import type { SessionRow } from '@sandlot/storage/tables/records'
import { type Unqueued, queuedMessages, sentBehindStop, unfinishedPrompt } from '../history/read-log.ts'
import { type ModelChoice, choose, chosenIn, modelOfPrompt, modelsOf } from '../loop/model-choice.ts'
import type { Model } from '../model/model.ts'
import type { Actor } from './access.ts'
import { Answers, type AnswerOptions } from './answers.ts'
import { Approvals, type ListedApproval, type PendingApproval } from './approvals.ts'
import type { Running } from './running.ts'
import { BackgroundWatch } from './background.ts'
import { SessionCore } from './core.ts'
import { Journal } from './journal.ts'
import type { RunnerParts } from './parts.ts'
import { type Accepted, type PromptOptions, Prompts } from './intake.ts'
import { messageIdOf } from '../history/session-messages.ts'
import { Runner } from './runner.ts'
import type { CloseReason, Subscription } from './subscription.ts'

export class Session {
  readonly id: string
  readonly userId: string
  readonly cwd: string
  readonly #core: SessionCore
  readonly #answers: Answers
  readonly #runner: Runner
  readonly #prompts: Prompts
  readonly #background: BackgroundWatch

  /**
   * Take a session over from the store, unless it was created just now: its earlier owner may not
   * write any more. `changed` gets every change of its line in the list.
   */
  static async load(
    row: CreatedSession,
    parts: RunnerParts,
    changed: (summary: SessionSummary) => void,
  ): Promise<Session> {
    return new Session(row, row.owned ?? (await parts.store.log.takeOver(row.id)), parts, changed)
  }

  private constructor(
    row: SessionRow,
    owned: Ownership,
    parts: RunnerParts,
    changed: (summary: SessionSummary) => void,
  ) {
    this.id = row.id
    this.userId = row.userId
    this.cwd = row.cwd
    const approvals = new Approvals(row.id, parts.now, (toolCallId) => void this.#answers.expire(toolCallId))
    const journal = new Journal(row, owned, approvals, parts)
    this.#core = new SessionCore(row, parts, journal, approvals, changed)
    this.#answers = new Answers(this.#core)
    this.#background = new BackgroundWatch(this.#core)
    this.#runner = new Runner(this.#core, this.#answers, () => this.#background.start())
    this.#prompts = new Prompts(this.#core, this.#runner)
  }

  // ── Reading
  // ───────────────────────────────────────────────────────────────────────────────────────────

  get mode(): Mode {
    return this.#core.journal.mode
  }

  /** Number of the last settled event. */
  get seq(): number {
    return this.#core.journal.seq
  }

  /** Settled events in order. */
  get log(): readonly SessionEvent[] {
    return this.#core.log
  }

  get running(): boolean {
    return this.#core.running !== undefined
  }

  /** The session continues in another object, here or in another agent: this one does nothing. */
  get lost(): boolean {
    return this.#core.lost
  }

  /** Nothing runs, reads or waits: the manager may forget this object. */
  get idle(): boolean {
    return this.#core.idle
  }

  /** About what its log takes of memory. */
  get bytes(): number {
    return this.#core.journal.bytes
  }

  pendingApprovals(): PendingApproval[] {
    return this.#core.approvals.pending()
  }

  /** The running prompt, for an administrator. */
  get runningPrompt(): RunningPrompt | undefined {
    return runningPrompt(this.#core)
  }

  summary(): SessionSummary {
    return this.#core.summary()
  }

  /**
   * Everything after `after`, what is in flight, then the live tail. `paced`: prompts take their
   * next step only when this reader waits for more. `actor`: who reads, for those who see it too.
   */
  subscribe(after: number, paced = false, actor?: Actor): Subscription {
    const subscription = this.#core.journal.subscribe(after, paced, actor)
    this.#background.shownTo()
    return subscription
  }

  // ── Prompts
  // ───────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Store a message: as a prompt of its own, or, while one runs, as `whenBusy` says. Resolves when
   * it is stored. Throws `busy`, `conflict` (the request id belongs to a prompt in another
   * session), `not_found` (deleted).
   */
  prompt(text: string, options: PromptOptions = {}): Promise<Accepted> {
    this.#core.journal.presence.stoppedTyping(options.author?.id ?? this.userId)
    return this.#prompts.submit(text, options)
  }

  /**
   * Store a message that waits: for the running prompt or behind it, and where none runs, for the
   * next one.
   */
  hold(text: string, as: 'steer' | 'queue'): Promise<void> {
    return this.#prompts.hold(text, as)
  }

  /** Resume the unfinished prompt, or start the first that waits. False when there is neither. */
  goOn(): Promise<boolean> {
    return this.#core.inTurn(() => this.#runner.goOn())
  }

  /**
   * Take back a message that waits behind a prompt. Answers why it waits no more: `withdrawn`, or
   * `sent` when the agent had it already. Resolves when that is stored; the same again answers the
   * same. Throws `not_found` (no such message ever waited here).
   */
  withdraw(messageId: string): Promise<Unqueued['why']> {
    return this.#prompts.withdraw(messageId)
  }

  /**
   * Resume the prompt that was begun and has no end, if there is one. `counts`: towards being given
   * up.
   */
  resumeUnfinished(counts = true): Promise<void> {
    return this.#core.inTurn(() => this.#runner.resumeUnfinished(counts))
  }

  /**
   * Stop the running prompt. Every call gets its outcome; messages that wait stay, those sent from
   * now on become the next prompt. Resolves when the Stop has taken effect on everything that waits
   * for the user; the end itself comes as an event.
   */
  async cancel(reason: 'cancelled' | 'interrupted' = 'cancelled', by?: Author): Promise<void> {
    const before = this.#core.running
    before?.stop.abort(reason)
    await this.#core.inTurn(async () => {
      // A prompt that was only being stored when Stop came is meant too; one that began after the
      // stopped one is not.
      const running = before ?? this.#core.running
      if (running === undefined || running !== this.#core.running) return
      running.stop.abort(reason)
      if (reason === 'cancelled') await this.#noteStop(running, by)
      await this.#answers.denyUnanswerable()
    })
  }

  /**
   * `cancel`, where this is the prompt that runs; a queued message that would become it is
   * withdrawn. A prompt that has ended, or a message that has joined another prompt, stays.
   * `administrator`: the one who stops it, for the people of the chat.
   */
  async cancelPrompt(promptId: string, administrator?: Author): Promise<void> {
    const messageId = messageIdOf(promptId)
    const { running } = this.#core
    if (running?.promptId === promptId) {
      running.stoppedByAdministrator ||= administrator !== undefined
      return this.cancel('cancelled', administrator)
    }
    if (!queuedMessages(this.log).some((message) => message.messageId === messageId)) return
    // It may have become a prompt just now.
    if ((await this.withdraw(messageId)) === 'sent') await this.cancelPrompt(promptId)
  }

  /** Stop whatever runs, also what begins while it is being stopped. Resolves when nothing runs. */
  async stopAll(reason: 'cancelled' | 'interrupted' = 'cancelled'): Promise<void> {
    for (;;) {
      await this.cancel(reason)
      const { running } = this.#core
      if (running === undefined) return
      if (running.stop.signal.aborted) await this.#runner.ended(running.promptId)
    }
  }

  /** Stop one call of the running prompt. Nothing happens when it has ended. Throws `not_found`. */
  async cancelCall(callId: string): Promise<void> {
    if (!isAnnounced(this.log, callId)) {
      throw new SandlotError('not_found', 'There is no such call in this chat.')
    }
    const { running } = this.#core
    if (running === undefined) return
    running.cancelOf(callId).abort('cancelled')
    await this.refuse(callId, 'cancel')
  }

  /** Throws `forbidden` above the ceiling. */
  setMode(mode: Mode, ceiling: Mode = 'yolo'): Promise<void> {
    return this.#core.inTurn(async () => {
      if (MODES.indexOf(mode) > MODES.indexOf(ceiling)) {
        throw new SandlotError('forbidden', `Your administrator allows no mode above “${ceiling}”.`)
      }
      this.#core.modeCeiling = ceiling
      if (mode === this.mode) return
      const _meta = makeMeta({}, this.#core.parts.now())
      await this.#core.store([{ sessionUpdate: 'current_mode_update', currentModeId: mode, _meta }])
    })
  }

  /** `title` is in place of the one that its first message gave it, for good. */
  rename(title: string): Promise<void> {
    return this.#core.inTurn(async () => {
      const _meta = makeMeta({}, this.#core.parts.now())
      await this.#core.store([{ sessionUpdate: 'session_info_update', title, _meta }])
    })
  }

  /**
   * All models that may be chosen, the deployment's own first; what the next prompt gets; what the
   * running one asks.
   */
  get models(): { all: readonly Model[]; chosen: ModelChoice; running: Model | undefined } {
    const { parts, log, running, models } = this.#core
    return {
      all: modelsOf(models),
      chosen: chosenIn(log, models),
      running: running === undefined ? undefined : modelOfPrompt(log, running.promptId, parts.models),
    }
  }

  /**
   * From the next prompt on. `thoughtLevel` null: as the model does by itself. Throws
   * `bad_request`.
   */
  chooseModel(change: { model?: string; thoughtLevel?: string | null }): Promise<void> {
    return this.#core.inTurn(async () => {
      const { parts, log, models } = this.#core
      const before = chosenIn(log, models)
      const chosen = choose(before, change, models)
      if (chosen.model === before.model && chosen.thoughtLevel === before.thoughtLevel) return
      await this.#core.store([makeSandlotEvent({ type: 'model_chosen', ...chosen }, {}, parts.now())])
    })
  }

  // ── Approvals
  // ─────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Answer an approval. The first stored answer wins: `answered` is false when there was one, and
   * `by` says whose. Throws `not_found`, `bad_request` (no such option), `forbidden` (it makes a
   * rule, and may not).
   */
  answer(
    toolCallId: string,
    optionId: string,
    more: AnswerOptions = {},
  ): Promise<{ answered: boolean; by?: string }> {
    return this.#answers.answer(toolCallId, optionId, more)
  }

  /** Pending approvals, with the schema of the arguments where the tool exists. */
  waitingApprovals(): Promise<ListedApproval[]> {
    return this.#answers.waiting()
  }

  /**
   * Deny an approval that will not be answered. Nothing happens if it was answered, or not asked.
   */
  refuse(toolCallId: string, by: 'cancel' | 'unattended' | 'expiry'): Promise<void> {
    return this.#answers.refuse(toolCallId, by)
  }

  // ── Other people
  // ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Current readers, once for each subscription. */
  get actors(): Actor[] {
    return this.#core.journal.actors
  }

  /** Shown to the other readers until it stops. Nothing is stored. */
  typing(userId: string): void {
    this.#core.journal.presence.typing(userId)
  }

  /**
   * Store a comment, which the model never reads. The same id again stores nothing. Throws
   * `not_found` (deleted).
   */
  comment({ commentId, text, mentions }: NewComment, author: Author | undefined): Promise<void> {
    return this.#core.inTurn(async () => {
      const { log, parts, journal } = this.#core
      const isStored = log.some((event) => {
        const happened = sandlotEventOf(event)
        return happened?.type === 'comment' && happened.commentId === commentId
      })
      if (isStored) return
      const event = { type: 'comment', commentId, text, mentions } as const
      await this.#core.store([makeSandlotEvent(event, { author }, parts.now())])
      if (author !== undefined) journal.presence.stoppedTyping(author.id)
    })
  }

  /** These users may not see it any more: they get no further event. */
  unshare(userIds: ReadonlySet<string>): void {
    this.#core.journal.unshare(userIds)
  }

  /** Authors of queued messages other than the owner. */
  get queuedAuthors(): Author[] {
    const authors = queuedMessages(this.log).flatMap(({ author }) => author ?? [])
    return authors.filter(({ id }) => id !== this.userId)
  }

  /** The author of the queued message with this id; undefined: the owner, or there is none. */
  queuedBy(messageId: string): Author | undefined {
    return queuedMessages(this.log).find((message) => message.messageId === messageId)?.author
  }

  /** Withdraws what this user wrote and no prompt has taken yet. */
  async withdrawOf(userId: string): Promise<void> {
    const theirs = queuedMessages(this.log).filter(({ author }) => author?.id === userId)
    for (const { messageId } of theirs) await this.withdraw(messageId)
  }

  // ── The end
  // ───────────────────────────────────────────────────────────────────────────────────────────

  /** Stop everything, then close every reader and refuse what comes later. */
  async endForGood(): Promise<void> {
    while (!this.#core.deleted) {
      await this.stopAll()
      await this.#core.inTurn(async () => {
        this.#core.deleted = this.#core.running === undefined
      })
    }
    this.forget('deleted')
  }

  /** Leaves it to another agent as it is. Resolves when nothing of it runs here any more. */
  async release(): Promise<void> {
    this.#core.release()
    await this.#core.running?.driven
    await this.#core.backgroundDone()
  }

  /** Resolves when the loop has stopped, after the parts' `leaving` was aborted. */
  async left(): Promise<void> {
    this.forget()
    await this.#core.running?.driven
    await this.#core.backgroundDone()
  }

  /** Resolves when no prompt runs any more, also none that waited behind another. */
  async settled(): Promise<void> {
    for (let last: Running | undefined; last !== this.#core.running;) {
      last = this.#core.running
      await last?.driven
    }
  }

  /** Stop clocks and end readers; the object is not used again. */
  forget(reason: CloseReason = 'resubscribe'): void {
    this.#core.approvals.stopClocks()
    this.#core.journal.closeReaders(reason)
  }

  /**
   * In the log, so that a process that ends before the prompt does not let the next one go on with
   * it. Once, and again for what was sent since.
   */
  async #noteStop({ promptId }: Running, author: Author | undefined): Promise<void> {
    const isNoted = unfinishedPrompt(this.log)?.stopped === true
    if (isNoted && sentBehindStop(this.log, promptId) === undefined) return
    const at = this.#core.parts.now()
    await this.#core.store([makeSandlotEvent({ type: 'stop_asked' }, { promptId, author }, at)])
  }
}

/* The running prompt of a session for an administrator: author, model, step; no text. */

/** Undefined when nothing runs. */
function runningPrompt(core: SessionCore): RunningPrompt | undefined {
  const { running, log, parts, approvals, userId } = core
  if (running === undefined) return undefined
  const { promptId, chargedTo } = running
  const open = new Map<string, string>()
  let startedAt = 0
  for (const event of log) {
    const meta = metaOf(event)
    if (meta.promptId !== promptId) continue
    if (sandlotEventOf(event)?.type === 'prompt_started') startedAt = meta.at
    if (event.sessionUpdate === 'tool_call') open.set(event.toolCallId, approvals.nameOf(event.toolCallId))
    if (isOutcome(event)) open.delete(event.toolCallId)
  }
  const waiting = new Set(approvals.pending().map(({ toolCallId }) => toolCallId))
  const runs = [...open].filter(([id]) => !waiting.has(id))
  const tools = [...new Set((runs.length > 0 ? runs : [...open]).map(([, tool]) => tool))]
  return {
    promptId,
    person: chargedTo ?? userId,
    model: modelOfPrompt(log, promptId, parts.models).name,
    startedAt,
    doing: runs.length > 0 ? 'calls' : open.size > 0 ? 'person' : 'model',
    tools,
  }
}
