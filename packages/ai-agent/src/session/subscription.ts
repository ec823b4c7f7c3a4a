/**
 * One reader of a session: what it missed, then the live tail. A slow one is closed and resumes; it
 * never blocks.
 */
import { type SessionEvent, forReaders, metaOf } from '@sandlot/shared/chat/events'
import { Queue } from '@sandlot/shared/async/streams'
import type { Actor } from './access.ts'

/** Events that may wait for a reader before its subscription is closed. */
const SUBSCRIPTION_LIMIT = 1_000

/**
 * `resubscribe`: too much waited, or the session is served elsewhere now; subscribe again after the
 * last number received. `deleted`: the session is gone. `unshared`: this reader may not see it any
 * more. `handed over`: another person owns it now, open it again.
 */
export type CloseReason = 'resubscribe' | 'deleted' | 'unshared' | 'handed over'

const CLOSED: Record<CloseReason, string> = {
  resubscribe: 'Resume from the last event received.',
  deleted: 'The chat was deleted.',
  unshared: 'The chat is not shared with this reader any more.',
  'handed over': 'The chat is another person’s now.',
}

export class SubscriptionClosed extends Error {
  override readonly name = 'SubscriptionClosed'
  readonly reason: CloseReason

  constructor(reason: CloseReason) {
    super(CLOSED[reason])
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
  readonly live: Pick<Queue<SessionEvent>, 'takeAll' | typeof Symbol.asyncIterator>
  /** Aborted when nothing more may be sent, also of what was taken from `live` already. */
  readonly unshared: AbortSignal
  close: () => void
}

/** The readers of one session. */
export class Subscribers {
  readonly #queues = new Set<Queue<SessionEvent>>()
  readonly #paced = new Set<Queue<SessionEvent>>()
  /** The actors of readers with a name. */
  readonly #named = new Map<Queue<SessionEvent>, { actor: Actor; unshared: AbortController }>()
  readonly #limit: number
  readonly #changed: (came: boolean) => void
  /** Live events of this turn of the event loop, in order, not sent yet. */
  #shown: SessionEvent[] = []
  /** The session is gone: a new subscription ends at once. */
  #deleted = false

  /** `changed` is called when a reader with a name has come, or one has gone. */
  constructor(changed: (came: boolean) => void = () => undefined, limit = SUBSCRIPTION_LIMIT) {
    this.#changed = changed
    this.#limit = limit
  }

  /** Current readers, once for each subscription. */
  *actors(): Generator<Actor> {
    for (const { actor } of this.#named.values()) yield actor
  }

  get size(): number {
    return this.#queues.size
  }

  /**
   * Synchronous, so that nothing can happen between what `catchUp` holds and the live tail.
   * `paced`: `caughtUp` waits for this reader, so it is never too slow.
   */
  add(catchUp: readonly SessionEvent[], seq: number, paced: boolean, actor?: Actor): Subscription {
    // They are in what the new reader catches up with.
    this.sendShown()
    const queue = new Queue<SessionEvent>(paced ? undefined : this.#limit)
    if (this.#deleted) queue.fail(new SubscriptionClosed('deleted'))
    else this.#queues.add(queue)
    if (paced) this.#paced.add(queue)
    const unshared = new AbortController()
    if (actor !== undefined && !this.#deleted) {
      this.#named.set(queue, { actor, unshared })
      this.#changed(true)
    }
    const close = (): void => {
      this.sendShown()
      this.#remove(queue)
      this.#paced.delete(queue)
      queue.end()
    }
    return { catchUp: catchUp.map(forReaders), seq, live: queue, unshared: unshared.signal, close }
  }

  /** Resolves when every paced reader waits for more. */
  async caughtUp(): Promise<void> {
    if (this.#paced.size === 0) return
    this.sendShown()
    for (const queue of this.#paced) await queue.idle()
  }

  /**
   * Sends a live event at the end of this turn of the event loop, or before whatever is sent next.
   * Pieces of the same text are joined: the more comes in one turn, the less each costs.
   */
  show(event: SessionEvent): void {
    if (this.#queues.size === 0) return
    const last = this.#shown.at(-1)
    const longer = last && joinedText(last, event)
    if (longer !== undefined) {
      this.#shown[this.#shown.length - 1] = longer
      return
    }
    if (this.#shown.push(event) === 1) setImmediate(() => this.sendShown())
  }

  /** Sends what was shown in this turn now. */
  sendShown(): void {
    const shown = this.#shown
    if (shown.length === 0) return
    this.#shown = []
    for (const event of shown) this.#push(event)
  }

  send(event: SessionEvent): void {
    this.sendShown()
    this.#push(event)
  }

  #push(settled: SessionEvent): void {
    const event = forReaders(settled)
    for (const queue of this.#queues) {
      if (queue.push(event)) continue
      this.#remove(queue)
      queue.fail(new SubscriptionClosed('resubscribe'))
    }
  }

  /** Ends those of these users, who get nothing more of what waits for them either. */
  unshare(userIds: ReadonlySet<string>): void {
    this.sendShown()
    for (const [queue, { actor, unshared }] of this.#named) {
      if (!userIds.has(actor.id)) continue
      unshared.abort()
      this.#remove(queue)
      queue.fail(new SubscriptionClosed('unshared'))
    }
  }

  #remove(queue: Queue<SessionEvent>): void {
    this.#queues.delete(queue)
    if (this.#named.delete(queue)) this.#changed(false)
  }

  closeAll(reason: CloseReason): void {
    this.sendShown()
    this.#deleted ||= reason === 'deleted'
    for (const queue of this.#queues) queue.fail(new SubscriptionClosed(reason))
    this.#queues.clear()
    this.#paced.clear()
    this.#named.clear()
  }
}

/** One event of two live pieces of the same text that follow each other; undefined for others. */
function joinedText(one: SessionEvent, next: SessionEvent): SessionEvent | undefined {
  const { sessionUpdate } = one
  if (sessionUpdate !== 'agent_message_chunk' && sessionUpdate !== 'agent_thought_chunk') return undefined
  if (next.sessionUpdate !== sessionUpdate || next.messageId !== one.messageId) return undefined
  if (one.content.type !== 'text' || next.content.type !== 'text') return undefined
  const { offset } = metaOf(one)
  const { text } = one.content
  if (offset === undefined || metaOf(next).offset !== offset + text.length) return undefined
  return { ...one, content: { type: 'text', text: text + next.content.text } }
}
