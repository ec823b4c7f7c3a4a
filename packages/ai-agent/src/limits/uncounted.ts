/** Answers whose provider counted nothing, as they are stored: a limit in dollars must hear of them. */
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/events'

/**
 * Whether this group of events, which is stored at once, brings an answer without a count. Not one that was cut off: its
 * provider had no occasion to count, and a Stop must not end somebody's day.
 */
export function isUncountedAnswer(group: readonly SessionEvent[]): boolean {
  return group.some(bringsAnswer) && !group.some(isCount) && !group.some(isCutOff)
}

function bringsAnswer(event: SessionEvent): boolean {
  const { turn, event: happened } = metaOf(event)
  // A summary that somebody asked for is an answer as well.
  if (happened?.type === 'compacted') return happened.why === 'asked' && happened.summary !== ''
  if (turn === undefined) return false
  return (
    event.sessionUpdate === 'agent_thought_chunk' ||
    event.sessionUpdate === 'agent_message_chunk' ||
    event.sessionUpdate === 'tool_call' ||
    (happened?.type === 'turn_ended' && happened.callIds.length === 0)
  )
}

function isCount(event: SessionEvent): boolean {
  return event.sessionUpdate === 'usage_update' && metaOf(event).usage !== undefined
}

function isCutOff(event: SessionEvent): boolean {
  const happened = sandlotEventOf(event)
  return happened?.type === 'prompt_ended' && ['cancelled', 'interrupted', 'loop'].includes(happened.reason)
}
