/** The session store of the plain loop: any list of events that only grows. */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type SessionEvent, isLive, metaOf } from '@sandlot/shared/chat/events'

/** One session's log. `append` is all or nothing, and durable when it resolves. */
export interface LogStore {
  /** Every settled event, in order. */
  read(): Promise<readonly SessionEvent[]>
  /**
   * Stores these events, which are numbered already, behind the others; what it resolves to does
   * not matter. `after`: number of the last event that the writer knows. Where there are more,
   * another run writes this log: reject, best with `notTheLast`.
   */
  append(events: readonly SessionEvent[], after?: number): Promise<unknown>
}

/** Two runs write one log. This one stops, and asks the model no more. */
export function notTheLast(after: number): SandlotError {
  return new SandlotError(
    'conflict',
    `Another run has written to this log after event ${after}; this one has stopped working on it.`,
  )
}

/** Keeps a log in memory, beginning with `events`. */
export function memoryLog(events: readonly SessionEvent[] = []): LogStore {
  const log = [...events]
  return {
    read: () => Promise.resolve([...log]),
    append: (more, after) => {
      if (more.some(isLive)) return Promise.reject(new TypeError('A live event cannot be stored.'))
      if (after !== undefined && after !== log.length) return Promise.reject(notTheLast(after))
      // Nothing is shared with their maker.
      log.push(...numbered(structuredClone(more), log.length))
      return Promise.resolve()
    },
  }
}

/** The events with their numbers, the first of them behind `after`. */
export function numbered(events: readonly SessionEvent[], after: number): SessionEvent[] {
  return events.map((event, index) => withSeq(event, after + index + 1))
}

function withSeq<Event extends SessionEvent>(event: Event, seq: number): Event {
  return { ...event, _meta: { ...event._meta, sandlot: { ...metaOf(event), seq } } }
}
