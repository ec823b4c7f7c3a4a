/**
 * Queued messages that a person takes back: what this tab has asked for, and what the log then
 * said.
 */
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import type { QueuedEntry } from '@sandlot/shared/transcript/entries'

export interface WithdrawnMessages {
  /**
   * Ids of messages that this tab has asked to have back, until the log says what became of them.
   */
  readonly asked: readonly string[]
  /** Messages returned to this tab, for the composer to take over. */
  readonly got: readonly QueuedEntry[]
  /** Prompts that will never be: their messages were taken back, here or on another device. */
  readonly removed: readonly string[]
}

export const NOTHING_WITHDRAWN: WithdrawnMessages = { asked: [], got: [], removed: [] }

export function withAsked(back: WithdrawnMessages, messageId: string): WithdrawnMessages {
  return back.asked.includes(messageId) ? back : { ...back, asked: [...back.asked, messageId] }
}

/** A message waits no more. `queued`: what waited until now; `promptId`: of the event. */
export function withUnqueued(
  back: WithdrawnMessages,
  { messageId, why }: Extract<SandlotEvent, { type: 'message_unqueued' }>,
  queued: readonly QueuedEntry[],
  promptId: string | undefined,
): WithdrawnMessages {
  const asked = back.asked.filter((id) => id !== messageId)
  if (why === 'sent') return { ...back, asked }
  const ours = back.asked.includes(messageId)
  return {
    asked,
    got: ours ? [...back.got, ...queued.filter((message) => message.messageId === messageId)] : back.got,
    removed: promptId === undefined ? back.removed : [...back.removed, promptId],
  }
}
