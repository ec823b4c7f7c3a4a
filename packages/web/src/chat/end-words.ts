/** How a prompt ended, in words. */
import type { EndReason } from '@sandlot/shared/reasons'
import { patternSentence } from '@sandlot/shared/failure-pattern'
import type { EndEntry } from '@sandlot/shared/transcript-entries'

export interface EndWords {
  title: string
  /** `calm`: the user wanted it or it is an ordinary limit; `error`: something is broken. */
  tone: 'calm' | 'error'
  /** What can be done. */
  hint?: string
}

export const END_WORDS: Record<Exclude<EndReason, 'completed'>, EndWords> = {
  cancelled: { title: 'Stopped', tone: 'calm' },
  interrupted: { title: 'Interrupted', tone: 'calm', hint: 'Sandlot was stopped while this ran.' },
  max_turns: {
    title: 'Stopped after the most turns one message may take',
    tone: 'calm',
    hint: 'Say “go on” to continue.',
  },
  budget: { title: 'Stopped: the budget is used up', tone: 'calm' },
  loop: { title: 'Stopped: the model repeated itself', tone: 'calm' },
  length: {
    title: 'The answer was cut off at the model’s limit',
    tone: 'calm',
    hint: 'Say “go on” to continue.',
  },
  refusal: { title: 'The model declined to answer', tone: 'calm' },
  error: { title: 'Something went wrong', tone: 'error' },
}

/** That the last calls failed for one cause, unless the end's own text says it already. */
export function failuresSentence({ failures, text }: EndEntry): string | undefined {
  if (failures === undefined) return undefined
  const sentence = patternSentence(failures)
  return text?.includes(sentence) === true ? undefined : sentence
}
