/**
 * State that the parts of one session share: its log, the one queue through which everything
 * changes it, and what runs.
 */
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { type Mode, lowerMode } from '@sandlot/shared/chat/mode'
import { metaOf, type SessionEvent, type EventGroup } from '@sandlot/shared/chat/events'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import { shortOfItsEnd } from '@sandlot/shared/chat/reasons'
import type { Effects, SessionRow } from '@sandlot/storage/tables/records'
import { isNotOwner } from '@sandlot/storage/storage-error'
import { unfinishedPrompt } from '../history/read-log.ts'
import { NOT_SAVED_TEXT, errorEvent, storeFailedEnd } from '../loop/endings.ts'
import { type Models, allowedModels } from '../loop/model-choice.ts'
import { type Model, askedBy } from '../model/model.ts'
import type { PromptState } from './prompt-waiters.ts'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import type { Approvals } from './approvals.ts'
import type { Running } from './running.ts'
import type { Journal } from './journal.ts'
import type { RunnerParts } from './parts.ts'
import { SHUTDOWN } from '../tools/tool-error.ts'

export class SessionCore {
  readonly id: string
  readonly userId: string
  readonly cwd: string
  readonly parts: RunnerParts
  readonly journal: Journal
  readonly approvals: Approvals
  /**
   * Aborted when this process releases the session without ending what runs: the process leaves,
   * or another one owns the session now.
   */
  readonly released: AbortSignal
  running: Running | undefined
  /**
   * The highest mode that an administrator lets this user have, as the last message or change of
   * mode said; before any, as is set for them.
   */
  modeCeiling: Mode
  /** Everything that comes later is refused. */
  deleted = false
  readonly #lost = new AbortController()
  readonly #queue = new SerialQueue()
  readonly #changed: (summary: SessionSummary) => void
  readonly #background = new Set<Promise<void>>()
  /** The end of the last prompt, which the store refuses. Nothing else is stored before it. */
  #unsavedEnd: SessionEvent | undefined

  constructor(
    row: SessionRow,
    parts: RunnerParts,
    journal: Journal,
    approvals: Approvals,
    changed: (summary: SessionSummary) => void,
  ) {
    this.id = row.id
    this.userId = row.userId
    this.cwd = row.cwd
    this.parts = parts
    this.journal = journal
    this.approvals = approvals
    this.#changed = changed
    this.modeCeiling = parts.users.modeCeilingOf(row.userId) ?? 'yolo'
    this.released = AbortSignal.any([parts.leaving, this.#lost.signal])
    const begun = row.unsavedEndAt === undefined ? undefined : unfinishedPrompt(journal.events)
    if (begun !== undefined) this.#showUnsaved(storeFailedEnd(begun.promptId, row.unsavedEndAt ?? 0))
  }

  /** The last prompt has ended, and its end is not stored. */
  get unsavedEnd(): SessionEvent | undefined {
    return this.#unsavedEnd
  }

  /**
   * Ends the running prompt where the store refuses its end. A process that reads the log later
   * finds that in the session's row; where that is refused too, only this one knows it. Only inside
   * `inTurn`.
   */
  async endUnsaved(promptId: string): Promise<void> {
    const at = this.parts.now()
    this.running = undefined
    this.#showUnsaved(storeFailedEnd(promptId, at))
    this.publishSummary()
    try {
      await this.asOwner(this.journal.append([], { ended: { reason: 'store_failed', at } }))
    } catch (error) {
      this.#warnUnsaved(error)
    }
  }

  /** Stores the end that was refused, if there is one. True: none is left. Only inside `inTurn`. */
  async saveEnd(): Promise<boolean> {
    try {
      await this.#saveEnd()
    } catch (error) {
      this.#warnUnsaved(error)
    }
    return this.#unsavedEnd === undefined
  }

  #showUnsaved(end: SessionEvent): void {
    this.#unsavedEnd = end
    const { promptId = '' } = metaOf(end)
    const about = { cause: 'internal', internal: 'store_failed' } as const
    const { _meta, ...shown } = errorEvent(promptId, about, NOT_SAVED_TEXT, metaOf(end).at)
    this.journal.show({ ...shown, _meta: { sandlot: { ..._meta.sandlot, live: true } } })
  }

  #warnUnsaved(error: unknown): void {
    const fields = { sessionId: this.id, error: messageOf(error) }
    this.parts.log.warn(fields, 'the end of a prompt could not be stored')
  }

  async #saveEnd(): Promise<void> {
    if (this.#unsavedEnd === undefined) return
    await this.asOwner(this.journal.append([this.#unsavedEnd]))
    this.#unsavedEnd = undefined
    this.publishSummary()
  }

  /** Another object or agent has the session now. */
  get lost(): boolean {
    return this.#lost.signal.aborted
  }

  /** Settled events in order. */
  get log(): readonly SessionEvent[] {
    return this.journal.events
  }

  /** The available models from the next prompt on. */
  get models(): Models {
    return allowedModels(this.parts.models, this.parts.users.modelsOf(this.userId))
  }

  /** The session's mode, bounded by the ceilings of its owner and of the running prompt. */
  get effectiveMode(): Mode {
    return lowerMode(lowerMode(this.journal.mode, this.modeCeiling), this.running?.modeCeiling)
  }

  /** Nothing runs, reads or waits. */
  get idle(): boolean {
    // An event that could not be stored is known here.
    if (this.#unsavedEnd !== undefined) return false
    const isAtWork = this.running !== undefined || this.#background.size > 0 || this.#queue.size > 0
    return !isAtWork && this.journal.readers === 0
  }

  /** Work of the session that no prompt waits for. `work` never rejects. */
  runInBackground(work: Promise<void>): void {
    const done = work.finally(() => this.#background.delete(done))
    this.#background.add(done)
  }

  /** Resolves when none of it is left. */
  async backgroundDone(): Promise<void> {
    await Promise.all(this.#background)
  }

  /**
   * Run after everything that was asked before, so that decisions see the log as it is. Throws
   * `not_found` (deleted).
   */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      if (this.deleted) throw new SandlotError('not_found', 'This chat was deleted.')
      return work()
    })
  }

  /** Only inside `inTurn`. */
  async store(events: EventGroup, more: Effects = {}): Promise<void> {
    await this.#saveEnd()
    if (await this.asOwner(this.journal.append(events, more))) this.publishSummary()
  }

  /**
   * For the owner only. When we are not the owner any more, release everything before the caller
   * gets the result.
   */
  async asOwner<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      this.releasedBy(error)
      throw error
    }
  }

  /** Releases the session where it continues after this error, here or elsewhere; else false. */
  releasedBy(error: unknown): boolean {
    if (this.lost) return true
    const isLost = isNotOwner(error)
    if (isLost) this.parts.log.warn({ sessionId: this.id }, 'another agent has taken this session over')
    if (!this.parts.restarts.resumesAfter(error) && !isLost) return false
    this.release()
    return true
  }

  /**
   * The model, asked only as long as no other agent works on this session: two would both be paid
   * for.
   */
  owned(model: Model): Model {
    const mayAsk = (): Promise<void> => this.asOwner(this.journal.checkOwner())
    return askedBy(model, async (request, signal, onPiece) => {
      await mayAsk()
      return model.stream(request, signal, onPiece)
    })
  }

  /** Does nothing any more: the session continues in another object. Idempotent. */
  release(): void {
    if (this.lost) return
    // Like a shutdown: commands continue, and are adopted.
    this.#lost.abort(SHUTDOWN)
    this.approvals.stopClocks()
    this.journal.closeReaders('resubscribe')
  }

  /** The session's line in the list has changed. */
  publishSummary(): void {
    this.#changed(this.summary())
  }

  summary(): SessionSummary {
    const { title, updatedAt, mode, ended: stored } = this.journal
    const unsaved = this.#unsavedEnd
    const ended = unsaved === undefined ? stored : { reason: 'error' as const, at: metaOf(unsaved).at }
    const waiting = this.approvals.pending().length
    const line = { sessionId: this.id, title, updatedAt, mode, running: this.running !== undefined, waiting }
    return ended === undefined ? line : { ...line, endedAt: ended.at, ended: shortOfItsEnd(ended.reason) }
  }

  /** The state that waiters for a prompt's end need. */
  state(): PromptState {
    const events = this.#unsavedEnd === undefined ? this.log : [...this.log, this.#unsavedEnd]
    return { events, seq: this.journal.seq, running: this.running !== undefined }
  }
}
