/** Sends one session's events to one client, in order, at the client's pace. */
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { seqOf } from '@sandlot/shared/chat/events'
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import type { Session } from '../session/session.ts'
import type { Actor } from '../session/access.ts'
import { SubscriptionClosed } from '../session/subscription.ts'

/**
 * Limits of one message: events, and characters of their texts. The socket's own limit is far
 * higher.
 */
const BATCH_EVENTS = 200
const BATCH_CHARS = 128 * 1024

interface PumpOptions {
  session: Pick<Session, 'subscribe' | 'lost'>
  /** Number of the last event that the client has. */
  after: number
  /** The reader, for others who see the session. */
  actor?: Actor | undefined
  /**
   * Resolves when the client's connection can take more events, undefined: at once. Rejects when
   * the connection is closed.
   */
  send: (events: readonly SessionEvent[]) => Promise<void> | undefined
  /**
   * Called when all missed events were sent; again after each resume.
   */
  caughtUp?: () => void
  /** Called when the session moves to another agent; nothing is sent from then on. */
  moved?: () => void
  /** Called when another person owns the session; nothing is sent from then on. */
  handedOver?: () => void
  /** Called when the user may not see the session any more; nothing is sent from then on. */
  unshared?: () => void
}

/**
 * When its subscription is closed because the client is too slow for live events, the pump resumes
 * from the last number it sent: the client gets the settled events and a snapshot of what is in
 * flight, and misses only live events.
 */
export class SessionPump {
  /**
   * Resolves with the number of the last settled event when everything missed was sent, or the pump
   * has ended.
   */
  readonly ready: Promise<number>
  readonly #options: PumpOptions
  readonly #waiters = new Set<{ seq: number; resolve: () => void }>()
  #sent: number
  #stop: () => void = () => undefined
  #ended = false

  constructor(options: PumpOptions) {
    this.#options = options
    this.#sent = options.after
    const ready = Promise.withResolvers<number>()
    this.ready = ready.promise
    void this.#run(ready.resolve).finally(() => {
      this.#ended = true
      ready.resolve(this.#sent)
      for (const { resolve } of this.#waiters) resolve()
      this.#waiters.clear()
    })
  }

  /** Number of the last settled event that the client has. */
  get sent(): number {
    return this.#sent
  }

  /** Resolves when the event with this number, and all before it, were sent, or never will be. */
  async sentThrough(seq: number): Promise<void> {
    if (this.#ended || this.#sent >= seq) return
    await new Promise<void>((resolve) => this.#waiters.add({ seq, resolve }))
  }

  stop(): void {
    this.#ended = true
    this.#stop()
  }

  /** Never rejects: a failure to send means that the connection is closed. */
  async #run(ready: (seq: number) => void): Promise<void> {
    const { session, caughtUp, actor, unshared, moved, handedOver } = this.#options
    for (;;) {
      const subscription = session.subscribe(this.#sent, false, actor)
      this.#stop = subscription.close
      const onUnshared = (): void => {
        this.#ended = true
        unshared?.()
      }
      subscription.unshared.addEventListener('abort', onUnshared, { once: true })
      try {
        for (const events of batches(subscription.catchUp)) {
          await this.#send(events)
          await pauseWhenDue()
        }
        ready(subscription.seq)
        caughtUp?.()
        for (;;) {
          const events = await subscription.live.takeAll()
          if (events.length === 0) return
          for (const batch of events.length === 1 ? [events] : batches(events)) await this.#send(batch)
        }
      } catch (error) {
        subscription.close()
        if (this.#ended || !(error instanceof SubscriptionClosed)) return
        if (error.reason === 'handed over') return handedOver?.()
        if (error.reason !== 'resubscribe') return
        if (session.lost) return moved?.()
      }
    }
  }

  async #send(events: readonly SessionEvent[]): Promise<void> {
    if (this.#ended) throw new SubscriptionClosed('deleted')
    const sending = this.#options.send(events)
    if (sending !== undefined) await sending
    const seq = events.findLast((event) => seqOf(event) !== undefined)?._meta.sandlot.seq
    if (seq === undefined) return
    this.#sent = Math.max(this.#sent, seq)
    for (const waiter of this.#waiters) {
      if (waiter.seq > this.#sent) continue
      this.#waiters.delete(waiter)
      waiter.resolve()
    }
  }
}

/**
 * The events in order, in pieces that one message can carry. An event that is too long for one goes
 * alone.
 */
export function* batches(events: readonly SessionEvent[]): Generator<SessionEvent[]> {
  let batch: SessionEvent[] = []
  let chars = 0
  for (const event of events) {
    const own = textLength(event)
    if (batch.length > 0 && (batch.length === BATCH_EVENTS || chars + own > BATCH_CHARS)) {
      yield batch
      batch = []
      chars = 0
    }
    batch.push(event)
    chars += own
  }
  if (batch.length > 0) yield batch
}

/** Characters of all texts in a JSON value. */
function textLength(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let sum = 0
  for (const part of Object.values(value)) sum += textLength(part)
  return sum
}
