/**
 * Writes frames to one browser: those of one turn of the event loop together, and the events of one
 * session that follow each other as one frame. A chat of ten thousand events, or a fast model,
 * costs a message a turn and not one an event.
 */
import type { Writable } from 'node:stream'
import { Recent } from '@sandlot/shared/async/recent'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { ServerFrame } from '@sandlot/shared/chat/frames'

/** Characters that do not wait for the end of the turn. */
const MAX_WAITING_CHARS = 256 * 1024

/** Other readers of the session get the same events. */
const written = new Recent<SessionEvent, string>()

interface EventGroup {
  sessionId: string
  /** Events as JSON. */
  events: string[]
}

export class FrameWriter {
  readonly #connection: Pick<Writable, 'cork' | 'uncork'>
  readonly #write: (text: string) => void
  /** Frames as JSON, and last perhaps a group that may still grow. */
  #waiting: (string | EventGroup)[] = []
  #chars = 0
  #timer: NodeJS.Immediate | undefined

  /** `write`: sends one message over `connection`. */
  constructor(connection: Pick<Writable, 'cork' | 'uncork'>, write: (text: string) => void) {
    this.#connection = connection
    this.#write = write
  }

  send(frame: ServerFrame): void {
    this.#chars += frame.type === 'ai_chat_event' ? this.#addEvent(frame) : this.#add(JSON.stringify(frame))
    if (this.#chars >= MAX_WAITING_CHARS) this.flush()
    else this.#timer ??= setImmediate(() => this.flush())
  }

  /** Sends what waits. */
  flush(): void {
    clearImmediate(this.#timer)
    this.#timer = undefined
    const waiting = this.#waiting
    this.#waiting = []
    this.#chars = 0
    this.#connection.cork()
    for (const frame of waiting) this.#write(typeof frame === 'string' ? frame : groupText(frame))
    this.#connection.uncork()
  }

  #add(text: string): number {
    this.#waiting.push(text)
    return text.length
  }

  #addEvent({ sessionId, event }: Extract<ServerFrame, { type: 'ai_chat_event' }>): number {
    const text = written.get(event, () => JSON.stringify(event))
    const last = this.#waiting.at(-1)
    if (typeof last === 'object' && last.sessionId === sessionId) last.events.push(text)
    else this.#waiting.push({ sessionId, events: [text] })
    return text.length
  }
}

function groupText({ sessionId, events }: EventGroup): string {
  const session = JSON.stringify(sessionId)
  return events.length === 1
    ? `{"type":"ai_chat_event","sessionId":${session},"event":${events[0]}}`
    : `{"type":"ai_chat_events","sessionId":${session},"events":[${events.join(',')}]}`
}
