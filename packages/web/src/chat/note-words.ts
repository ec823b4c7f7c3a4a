/** What happened beside the conversation, in words. */
import type { NoteEntry } from '@sandlot/shared/transcript-entries'

/** Why another model answers; the model's error classes for which the agent goes on with the next one. */
const BECAUSE: ReadonlyMap<string, string> = new Map([
  ['overloaded', 'the previous model was overloaded'],
  ['rate_limit', 'the previous model took no more requests'],
  ['quota', 'the previous model had no quota left'],
])

export function noteWords({ event }: NoteEntry): string {
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
