import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'

export function message(n: number): SessionEvent {
  return {
    sessionUpdate: 'agent_message_chunk',
    messageId: `m${n}`,
    content: { type: 'text', text: String(n).repeat(50) },
    _meta: makeMeta({}, n),
  }
}
