/** What happened beside the conversation, in words: on the page, and in an editor. */
import type { SandlotEvent } from './sandlot-event.ts'

export type NoteEvent = Extract<SandlotEvent, { type: 'compacted' | 'model_changed' }>

/**
 * Why another model answers; the model's error classes for which the agent goes on with the next
 * one.
 */
const BECAUSE: ReadonlyMap<string, string> = new Map([
  ['overloaded', 'the previous model was overloaded'],
  ['rate_limit', 'the previous model took no more requests'],
  ['quota', 'the previous model had no quota left'],
])

/** A line, without a full stop. */
export function noteWords(event: NoteEvent): string {
  if (event.type === 'compacted') {
    return event.summary === ''
      ? 'Older results were left out to make room'
      : 'Earlier messages were summarised to make room'
  }
  const because = event.why === undefined ? undefined : BECAUSE.get(event.why)
  return because === undefined
    ? `Answered by ${event.model} from here on`
    : `Answered by ${event.model} because ${because}`
}
