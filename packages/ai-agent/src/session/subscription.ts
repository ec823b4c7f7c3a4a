/**
 * One reader of a session: what it missed, then the live tail. A slow one is closed and resumes; it
 * never blocks.
 */
import type { SessionEvent } from '@sandlot/shared/events'
import { Queue } from '@sandlot/shared/async/streams'

/** Events that may wait for a reader before its subscription is closed. */
const SUBSCRIPTION_LIMIT = 1_000

/**
 * `resubscribe`: too much waited, or the session is served elsewhere now; subscribe again after the
 * last number received. `deleted`: the session is gone.
 */
export type CloseReason = 'resubscribe' | 'deleted'

export class SubscriptionClosed extends Error {
  override readonly name = 'SubscriptionClosed'
  readonly reason: CloseReason

  constructor(reason: CloseReason) {
    super(reason === 'resubscribe' ? 'Resume from the last event received.' : 'The chat was deleted.')
    this.reason = reason
  }
}

export interface Subscription {
  /** Settled events after the asked number, then one live event per thing in flight. */
  readonly catchUp: readonly SessionEvent[]
  /** Number of the last settled event in or before `catchUp`. */
  readonly seq: number
  /**
   * Everything from then on, nothing lost or doubled. Throws `SubscriptionClosed`; ends after
   * `close()`.
   */
  readonly live: AsyncIterable<SessionEvent>
  close: () => void
}

/** The readers of one session. */
export class Subscribers {
  readonly #queues = new Set<Queue<SessionEvent>>()
  readonly #paced = new Set<Queue<SessionEvent>>()
  readonly #limit: number
  /** The session is gone: a new subscription ends at once. */
  #deleted = false

  constructor(limit = SUBSCRIPTION_LIMIT) {
    this.#limit = limit
  }

  get size(): number {
    return this.#queues.size
  }

  /**
   * Synchronous, so that nothing can happen between what `catchUp` holds and the live tail.
   * `paced`: `caughtUp` waits for this reader, so it is never too slow.
   */
  add(catchUp: readonly SessionEvent[], seq: number, paced: boolean): Subscription {
    const queue = new Queue<SessionEvent>(paced ? undefined : this.#limit)
    if (this.#deleted) queue.fail(new SubscriptionClosed('deleted'))
    else this.#queues.add(queue)
    if (paced) this.#paced.add(queue)
    const close = (): void => {
      this.#queues.delete(queue)
      this.#paced.delete(queue)
      queue.end()
    }
    return { catchUp, seq, live: queue, close }
  }

  /** Resolves when every paced reader waits for more. */
  async caughtUp(): Promise<void> {
    for (const queue of this.#paced) await queue.idle()
  }

  send(event: SessionEvent): void {
    for (const queue of this.#queues) {
      if (queue.push(event)) continue
      this.#queues.delete(queue)
      queue.fail(new SubscriptionClosed('resubscribe'))
    }
  }

  closeAll(reason: CloseReason): void {
    this.#deleted ||= reason === 'deleted'
    for (const queue of this.#queues) queue.fail(new SubscriptionClosed(reason))
    this.#queues.clear()
    this.#paced.clear()
  }
}
