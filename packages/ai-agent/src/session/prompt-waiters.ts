import type { SessionEvent } from '@sandlot/shared/chat/events'
import { promptEndOf, type PromptEnd, unqueued } from '../history/read-log.ts'
import { messageIdOf } from '../history/session-messages.ts'

/** A caller that waits for the end of a prompt. */
interface Waiter {
  promptId: string
  ended: PromiseWithResolvers<PromptEnd>
}

/** The state of the session that waiters need. */
export interface PromptState {
  events: readonly SessionEvent[]
  seq: number
  running: boolean
}

export class PromptWaiters {
  readonly #waiters = new Set<Waiter>()

  /**
   * The end of the prompt with this id, or of the one that took the message which would have become
   * it. A message that was withdrawn ends there, cancelled.
   */
  wait(promptId: string, state: PromptState): Promise<PromptEnd> {
    const known = endOf(promptId, state)
    if (known !== undefined) return Promise.resolve(known)
    const ended = Promise.withResolvers<PromptEnd>()
    this.#waiters.add({ promptId, ended })
    return ended.promise
  }

  /**
   * Call after each end, and after a message was withdrawn. `failed`: the running prompt's end
   * could not be stored.
   */
  notify(state: PromptState, failed?: unknown): void {
    for (const waiter of this.#waiters) {
      const end = failed === undefined ? endOf(waiter.promptId, state) : undefined
      if (end === undefined && failed === undefined) continue
      this.#waiters.delete(waiter)
      if (end === undefined) waiter.ended.reject(failed)
      else waiter.ended.resolve(end)
    }
  }
}

function endOf(promptId: string, { events, seq, running }: PromptState): PromptEnd | undefined {
  const waited = unqueued(events, messageIdOf(promptId))
  if (waited?.why === 'withdrawn')
    return { promptId, stopReason: 'cancelled', reason: 'cancelled', seq: waited.seq }
  const end = promptEndOf(events, waited?.promptId ?? promptId)
  if (end !== undefined || running) return end
  // A message that a Stop left waiting: it goes with the next prompt, whenever that is.
  return { promptId, stopReason: 'cancelled', reason: 'cancelled', seq }
}
