/**
 * What the parts of one session share: its log, the one queue through which everything changes it,
 * and what runs.
 */
import { SandlotError } from '@sandlot/shared/errors'
import { type Mode, MODES } from '@sandlot/shared/mode'
import type { SessionEvent, EventGroup } from '@sandlot/shared/events'
import type { SessionSummary } from '@sandlot/shared/frames'
import { shortOfItsEnd } from '@sandlot/shared/reasons'
import type { Effects, SessionRow } from '@sandlot/storage/sessions/store'
import { isNotOwner } from '@sandlot/storage/storage-error'
import { type Models, allowedModels } from '../loop/model-choice.ts'
import type { Model } from '../model/model.ts'
import type { PromptState } from './prompt-waiters.ts'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import type { Approvals } from './approvals.ts'
import type { Running } from './batch.ts'
import type { Journal } from './journal.ts'
import { RequestMarks } from './effects.ts'
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
  readonly #marks = new RequestMarks()
  readonly #queue = new SerialQueue()
  readonly #changed: (summary: SessionSummary) => void
  readonly #besides = new Set<Promise<void>>()

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
    this.modeCeiling = parts.modeCeilingOf?.(row.userId) ?? 'yolo'
    this.released = AbortSignal.any([parts.leaving, this.#lost.signal])
  }

  /** The session goes on elsewhere. */
  get lost(): boolean {
    return this.#lost.signal.aborted
  }

  /** Settled events in order. */
  get log(): readonly SessionEvent[] {
    return this.journal.events
  }

  /** What may be chosen from the next prompt on. */
  get models(): Models {
    return allowedModels(this.parts.models, this.parts.modelsOf?.(this.userId))
  }

  /** The session's mode, bounded by the ceilings of its owner and of the running prompt. */
  get effectiveMode(): Mode {
    const modes = [this.journal.mode, this.modeCeiling, this.running?.modeCeiling ?? 'yolo']
    return MODES[Math.min(...modes.map((mode) => MODES.indexOf(mode)))] ?? 'manual'
  }

  /** Nothing runs, reads or waits. */
  get idle(): boolean {
    const isAtWork = this.running !== undefined || this.#besides.size > 0 || this.#queue.size > 0
    return !isAtWork && this.journal.readers === 0
  }

  /** Work of the session that no prompt waits for. `work` never rejects. */
  besides(work: Promise<void>): void {
    const done = work.finally(() => this.#besides.delete(done))
    this.#besides.add(done)
  }

  /** Resolves when none of it is left. */
  async besidesDone(): Promise<void> {
    await Promise.all(this.#besides)
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
    const marked = this.#marks.onAnswer(events)
    const effects = { ...marked.effects, ...more }
    const changed = await this.asOwner(this.journal.append(marked.events, effects))
    marked.kept()
    if (changed) this.tellChanged()
  }

  /**
   * What only the owner may do. When we are not that any more, release everything before the caller
   * gets it.
   */
  async asOwner<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      this.releasedBy(error)
      throw error
    }
  }

  /** Releases the session where it goes on after this error, here or elsewhere; else false. */
  releasedBy(error: unknown): boolean {
    if (this.lost) return true
    const isLost = isNotOwner(error)
    if (isLost) this.parts.log.warn({ sessionId: this.id }, 'another agent has taken this session over')
    if (this.parts.resumesAfter?.(error) !== true && !isLost) return false
    this.release()
    return true
  }

  /**
   * The model, asked only as long as no other agent works on this session: two would both be paid
   * for.
   */
  owned(model: Model): Model {
    const marks = this.#marks
    const upTo = (): number => this.journal.seq
    const mayAsk = (): Promise<void> => this.asOwner(this.journal.checkOwner())
    return {
      ...model,
      async *stream(request, signal) {
        const at = upTo()
        await mayAsk()
        return yield* marks.ask(model, request, signal, at)
      },
    }
  }

  /** Does nothing any more: the session goes on in another object. Idempotent. */
  release(): void {
    if (this.lost) return
    // As for a shutdown: commands go on, and are adopted.
    this.#lost.abort(SHUTDOWN)
    this.approvals.stopClocks()
    this.journal.closeReaders('resubscribe')
  }

  /** The session's line in the list has changed. */
  tellChanged(): void {
    this.#changed(this.summary())
  }

  summary(): SessionSummary {
    const { title, updatedAt, mode, ended } = this.journal
    const waiting = this.approvals.pending().length
    const line = { sessionId: this.id, title, updatedAt, mode, running: this.running !== undefined, waiting }
    return ended === undefined ? line : { ...line, endedAt: ended.at, ended: shortOfItsEnd(ended.reason) }
  }

  /** What those who wait for a prompt's end have to know. */
  state(): PromptState {
    return { events: this.log, seq: this.journal.seq, running: this.running !== undefined }
  }
}
