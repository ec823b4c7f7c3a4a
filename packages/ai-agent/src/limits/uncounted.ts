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
  // Which event an answer begins with is marked; a summary that somebody asked for is an answer as well.
  const { request, event: happened } = metaOf(event)
  return (
    request !== undefined ||
    (happened?.type === 'compacted' && happened.why === 'asked' && happened.summary !== '')
  )
}

function isCount(event: SessionEvent): boolean {
  return event.sessionUpdate === 'usage_update' && metaOf(event).usage !== undefined
}

function isCutOff(event: SessionEvent): boolean {
  const happened = sandlotEventOf(event)
  return happened?.type === 'prompt_ended' && ['cancelled', 'interrupted', 'loop'].includes(happened.reason)
}
