/**
 * What the log says of calls when a batch begins. What this process does with them afterwards does
 * not count.
 */
import { type SessionEvent, isLive, isOutcome, metaOf } from '@sandlot/shared/events'

export interface CallsBefore {
  /** Calls that the log has already announced; they are not announced again. */
  announced: (callId: string) => boolean
  /**
   * Calls that the log says had begun when the batch did: an earlier process died while they ran.
   */
  begunBefore: (callId: string) => boolean
  /** The attempt of this call that the log has from before a restart. */
  previousAttempt: (callId: string) => { n: number; boot: string } | undefined
}

export function callsBefore(log: readonly SessionEvent[]): CallsBefore {
  const announced = new Set<string>()
  const begun = new Set<string>()
  const attempts = new Map<string, { n: number; boot: string }>()
  for (const event of log) {
    if (event.sessionUpdate === 'tool_call') announced.add(event.toolCallId)
    if (event.sessionUpdate !== 'tool_call_update' || isLive(event) || isOutcome(event)) continue
    const { attempt } = metaOf(event)
    if (event.status === 'in_progress') begun.add(event.toolCallId)
    if (attempt !== undefined) attempts.set(event.toolCallId, attempt)
  }
  return {
    announced: (callId) => announced.has(callId),
    begunBefore: (callId) => begun.has(callId),
    previousAttempt: (callId) => attempts.get(callId),
  }
}
