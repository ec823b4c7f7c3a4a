/** Where the plain loop keeps a session: any list of events that only grows. */
import { type SessionEvent, isLive, metaOf } from '@sandlot/shared/events'

/** One session's log. `append` is all or nothing, and durable when it resolves. */
export interface LogStore {
  /** Every settled event, in order. */
  read(): Promise<readonly SessionEvent[]>
  /** Stores these events behind the others and returns them as stored: numbered densely from 1. */
  append(events: readonly SessionEvent[]): Promise<readonly SessionEvent[]>
}

/** Keeps a log in memory, beginning with `events`. */
export function memoryLog(events: readonly SessionEvent[] = []): LogStore {
  const log = [...events]
  return {
    read: () => Promise.resolve([...log]),
    append: (more) => {
      if (more.some(isLive)) return Promise.reject(new TypeError('A live event cannot be stored.'))
      const stored = more.map((event, index) => numbered(event, log.length + index + 1))
      log.push(...stored)
      return Promise.resolve(stored)
    },
  }
}

/** The event with its number, and nothing shared with its maker. */
function numbered<Event extends SessionEvent>(event: Event, seq: number): Event {
  const copy = structuredClone(event)
  copy._meta.sandlot = { ...metaOf(copy), seq }
  return copy
}
