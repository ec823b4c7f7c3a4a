/** Readers of a shared session now: a live event for its readers. Nothing of it is stored. */
import { makeSandlotEvent, type SessionEvent } from '@sandlot/shared/chat/events'
import type { Actor } from './access.ts'

/** Changes within this time make one event: 200 readers who come at once get one each. */
const GATHER_MS = 100
/** A person who was writing and sends nothing for so long has stopped. Milliseconds. */
const TYPING_MS = 5_000
/** People named in one event. */
const MOST_NAMED = 100

export class Presence {
  readonly #readers: () => Iterable<Actor>
  readonly #send: (event: SessionEvent) => void
  readonly #now: () => number
  /** Until when each counts as writing, by user id. */
  readonly #typing = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  /** People of the last event, as JSON; `[]`: one or none, for whom there is no event. */
  #published = '[]'

  constructor(readers: () => Iterable<Actor>, send: (event: SessionEvent) => void, now: () => number) {
    this.#readers = readers
    this.#send = send
    this.#now = now
  }

  /** A reader has come or gone. `always`: publish also where nothing changed, for a new reader. */
  changed(always = false): void {
    if (always) this.#published = ''
    this.#timer ??= setTimeout(() => this.#publish(), GATHER_MS).unref()
  }

  typing(userId: string): void {
    this.#typing.set(userId, this.#now() + TYPING_MS)
    setTimeout(() => this.changed(), TYPING_MS + GATHER_MS).unref()
    this.changed()
  }

  /** They have sent what they wrote. */
  stoppedTyping(userId: string): void {
    if (this.#typing.delete(userId)) this.changed()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #publish(): void {
    this.#timer = undefined
    const now = this.#now()
    const people = new Map<string, { id: string; name: string; typing?: true }>()
    for (const { id, name = '' } of this.#readers()) {
      const typing = (this.#typing.get(id) ?? 0) > now ? { typing: true as const } : {}
      if (people.size < MOST_NAMED) people.set(id, { id, name, ...typing })
    }
    const named = people.size > 1 ? [...people.values()] : []
    const published = JSON.stringify(named)
    if (published === this.#published || (named.length === 0 && this.#published === '')) {
      this.#published = published
      return
    }
    this.#published = published
    const event = makeSandlotEvent({ type: 'presence', people: named }, { live: true }, now)
    this.#send(event)
  }
}
