import { sandlotEventOf } from '@sandlot/shared/chat/events'
import type { CallContext } from './tool.ts'

/**
 * True if the call has asked its user for something, in this process or an earlier one: it does so
 * once.
 */
export function hasAsked({ ids, events }: Pick<CallContext, 'ids' | 'events'>): boolean {
  return events().some((event) => {
    const happened = sandlotEventOf(event)
    return happened?.type === 'approval_asked' && happened.toolCallId === ids.callId
  })
}
