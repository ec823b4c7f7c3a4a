/** What the parts of one session share: its log, the one queue through which everything changes it, and what runs. */
import { SandlotError } from '@sandlot/shared/errors'
import { type Mode, type SessionEvent, MODES } from '@sandlot/shared/events'
import type { SessionSummary } from '@sandlot/shared/frames'
import type { Effects, SessionRow } from '@sandlot/storage/sessions/store'
import type { EventGroup } from './loop-context.ts'
import type { PromptState } from './prompt-waiters.ts'
import { SerialQueue } from './serial-queue.ts'
import type { Approvals } from './session-approvals.ts'
import type { Running } from './session-batch.ts'
import type { Journal } from './session-journal.ts'
import type { SessionParts } from './session-parts.ts'

export class SessionCore {
  readonly id: string
  readonly userId: string
  readonly cwd: string
  readonly parts: SessionParts
  readonly journal: Journal
  readonly approvals: Approvals
  running: Running | undefined
  /** The highest mode that an administrator lets this user have, as the last message or change of mode said. */
  modeCeiling: Mode = 'yolo'
  /** Everything that comes later is refused. */
  deleted = false
  readonly #queue = new SerialQueue()
  readonly #changed: (summary: SessionSummary) => void

  constructor(
    row: SessionRow,
    parts: SessionParts,
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
  }

  /** Settled events in order. */
  get log(): readonly SessionEvent[] {
    return this.journal.events
  }

  /** The session's mode, or what the ceiling leaves of it. */
  get effectiveMode(): Mode {
    const { mode } = this.journal
    return MODES.indexOf(mode) <= MODES.indexOf(this.modeCeiling) ? mode : this.modeCeiling
  }

  /** Nothing runs, reads or waits. */
  get idle(): boolean {
    return this.running === undefined && this.journal.readers === 0 && this.#queue.size === 0
  }

  /** Run after everything that was asked before, so that decisions see the log as it is. Throws `not_found` (deleted). */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      if (this.deleted) throw new SandlotError('not_found', 'This session was deleted.')
      return work()
    })
  }

  /** Only inside `inTurn`. */
  async store(events: EventGroup, more: Effects = {}): Promise<void> {
    if (await this.journal.append(events, more)) this.tellChanged()
  }

  /** The session's line in the list has changed. */
  tellChanged(): void {
    this.#changed(this.summary())
  }

  summary(): SessionSummary {
    const { title, updatedAt, mode } = this.journal
    const waiting = this.approvals.pending().length
    return { sessionId: this.id, title, updatedAt, mode, running: this.running !== undefined, waiting }
  }

  /** What those who wait for a prompt's end have to know. */
  state(): PromptState {
    return { events: this.log, seq: this.journal.seq, running: this.running !== undefined }
  }
}
