/**
 * A session's log in memory and in the store: numbers and stores what is settled, folds it, keeps
 * what is in flight, and shows both to the readers. All appends go through one queue.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { Mode } from '@sandlot/shared/chat/mode'
import { metaOf, sandlotEventOf, seqOf, type SessionEvent } from '@sandlot/shared/chat/events'
import type { Ownership } from '@sandlot/storage/sessions/log'
import type { Effects, SessionRow, NoRoom } from '@sandlot/storage/tables/records'
import type { Approvals } from './approvals.ts'
import { effectsOf } from './effects.ts'
import { InFlight } from './in-flight.ts'
import type { Actor } from './access.ts'
import { Presence } from './presence.ts'
import type { RunnerParts } from './parts.ts'
import { Subscribers, type CloseReason, type Subscription } from './subscription.ts'

export class Journal {
  readonly #row: SessionRow
  readonly #parts: Pick<RunnerParts, 'store' | 'leaving' | 'models'>
  readonly #epoch: number
  readonly #approvals: Approvals
  readonly #events: SessionEvent[]
  #bytes: number
  readonly #flight = new InFlight()
  readonly #subscribers = new Subscribers((came) => this.presence.changed(came))
  readonly presence: Presence
  #mode: Mode
  #title: string | null
  #updatedAt: number
  #ended: SessionRow['ended']
  /** The user charged for the last prompt; undefined: the owner. */
  #charged: { promptId: string; to: string } | undefined

  constructor(
    row: SessionRow,
    { epoch, events }: Ownership,
    approvals: Approvals,
    parts: Pick<RunnerParts, 'store' | 'leaving' | 'models' | 'now'>,
  ) {
    this.#row = row
    this.#parts = parts
    this.#epoch = epoch
    this.#approvals = approvals
    this.#events = [...events]
    this.#bytes = events.reduce((sum, event) => sum + weightOf(event), 0)
    this.#mode = row.mode
    this.#title = row.title
    this.#updatedAt = row.updatedAt
    this.#ended = row.ended
    this.presence = new Presence(
      () => this.#subscribers.actors(),
      (event) => this.#subscribers.send(event),
      parts.now,
    )
    for (const event of events) this.#fold(event)
    approvals.startClocks()
  }

  /** Settled events in order. */
  get events(): readonly SessionEvent[] {
    return this.#events
  }

  /** Number of the last settled event. */
  get seq(): number {
    const last = this.#events.at(-1)
    return last === undefined ? 0 : (seqOf(last) ?? 0)
  }

  /** About what the log takes of memory. */
  get bytes(): number {
    return this.#bytes
  }

  get mode(): Mode {
    return this.#mode
  }

  get title(): string | null {
    return this.#title
  }

  /** Epoch milliseconds. */
  get updatedAt(): number {
    return this.#updatedAt
  }

  /** The end of the last prompt. */
  get ended(): SessionRow['ended'] {
    return this.#ended
  }

  get readers(): number {
    return this.#subscribers.size
  }

  /**
   * Everything after `after`, what is in flight, then the live tail. Nothing happens in between:
   * this is synchronous.
   */
  subscribe(after: number, paced: boolean, actor?: Actor): Subscription {
    const missed = this.#events.filter((event) => (seqOf(event) ?? 0) > after)
    return this.#subscribers.add([...missed, ...this.#flight.snapshot()], this.seq, paced, actor)
  }

  /** Resolves when every paced reader has taken what there is and waits for more. */
  caughtUp(): Promise<void> {
    return this.#subscribers.caughtUp()
  }

  /**
   * Stores settled events with their effects in one transaction, then folds and publishes them.
   * Returns whether the session's row in the list has changed. Throws errors of the store
   * (`not_owner`: another agent has this session now), and `not_ready` when the process exits.
   */
  async append(events: readonly SessionEvent[], more: Effects = {}): Promise<boolean> {
    // Text that came before must not wait for the disk.
    this.#subscribers.sendShown()
    const { store, leaving, models } = this.#parts
    if (leaving.aborted) throw new SandlotError('not_ready', 'The agent is shutting down.')
    const { id, userId } = this.#row
    const context = {
      userId,
      model: models.model.name,
      toolOf: (callId: string) => this.#approvals.nameOf(callId),
      promptAuthor: () => this.#promptAuthor(),
    }
    const effects = this.#charge(events, { ...effectsOf(events, context), ...more })
    const stored = await store.log.append(id, events, effects, this.#epoch, this.seq)
    for (const event of stored) {
      this.#events.push(event)
      this.#bytes += weightOf(event)
      this.#flight.settle(event)
      this.#fold(event)
      this.#updatedAt = metaOf(event).at
      if (event.sessionUpdate === 'current_mode_update') this.#mode = event.currentModeId
      if (event.sessionUpdate === 'session_info_update' && typeof event.title === 'string')
        this.#title = event.title
      this.#subscribers.send(event)
    }
    this.#approvals.startClocks()
    return stored.some(changesSummary)
  }

  /** The author of the last prompt's first message; undefined: it is unattended. */
  #promptAuthor(): string | undefined {
    const start = this.#events.findLastIndex((event) => sandlotEventOf(event)?.type === 'prompt_started')
    const [started, ...later] = this.#events.slice(Math.max(start, 0))
    const about = started && sandlotEventOf(started)
    if (about?.type === 'prompt_started' && about.unattended === true) return undefined
    const message = later.find(({ sessionUpdate }) => sessionUpdate === 'user_message_chunk')
    return (message && metaOf(message).author?.id) ?? this.#row.userId
  }

  /** `OutputRows.append`, as long as we are the owner. */
  appendOutput(callId: string, offset: number, bytes: Uint8Array): Promise<NoRoom | undefined> {
    return this.#parts.store.outputs.append(this.#row.id, callId, offset, bytes, this.#epoch)
  }

  /** Throws `not_owner` when another agent has taken the session over. */
  checkOwner(): Promise<void> {
    return this.#parts.store.log.checkOwner(this.#row.id, this.#epoch)
  }

  /** Show a live event. It is not stored. See `Subscribers.show`. */
  show(event: SessionEvent): void {
    this.#flight.show(event)
    this.#subscribers.show(event)
  }

  closeReaders(reason: CloseReason): void {
    this.presence.stop()
    this.#subscribers.closeAll(reason)
  }

  /** Current readers, once for each subscription. */
  get actors(): Actor[] {
    return [...this.#subscribers.actors()]
  }

  /** See `Subscribers.unshare`. */
  unshare(userIds: ReadonlySet<string>): void {
    this.#subscribers.unshare(userIds)
  }

  #fold(event: SessionEvent): void {
    this.#approvals.note(event)
    const begun = sandlotEventOf(event)
    if (begun?.type === 'prompt_ended') this.#ended = { reason: begun.reason, at: metaOf(event).at }
    if (begun?.type !== 'prompt_started') return
    const { promptId = '' } = metaOf(event)
    this.#charged = begun.chargedTo === undefined ? undefined : { promptId, to: begun.chargedTo }
  }

  /** With whom what these events use up counts for. */
  #charge(events: readonly SessionEvent[], { usage, outcome, ...effects }: Effects): Effects {
    const chargedTo = (promptId: string): string | undefined => {
      for (const event of events) {
        const begun = sandlotEventOf(event)
        if (begun?.type === 'prompt_started' && metaOf(event).promptId === promptId) return begun.chargedTo
      }
      return this.#charged?.promptId === promptId ? this.#charged.to : undefined
    }
    const { runningPromptId } = effects
    return {
      ...effects,
      chargedTo: runningPromptId == null ? undefined : chargedTo(runningPromptId),
      usage: usage && { ...usage, chargedTo: chargedTo(usage.promptId) },
      outcome: outcome && { ...outcome, chargedTo: chargedTo(outcome.promptId) },
    }
  }
}

function changesSummary(event: SessionEvent): boolean {
  if (event.sessionUpdate === 'current_mode_update') return true
  if (event.sessionUpdate === 'session_info_update' && typeof event.title === 'string') return true
  const type = sandlotEventOf(event)?.type
  return type === 'approval_asked' || type === 'approval_answered'
}

/* About how much memory a loaded event takes. */

/** Bytes of an object or a list beside what is in it, and of one of its fields. */
const OBJECT_BYTES = 56
const FIELD_BYTES = 16

function weightOf(event: SessionEvent): number {
  return weigh(event)
}

function weigh(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let bytes = OBJECT_BYTES
  for (const field of Object.values(value) as unknown[]) bytes += FIELD_BYTES + weigh(field)
  return bytes
}
