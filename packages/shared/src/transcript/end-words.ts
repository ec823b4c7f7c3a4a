/** How a prompt ended, in words. */
import { CAUSE_WORDS } from './cause-words.ts'
import type { EndReason, ErrorCause } from '../chat/reasons.ts'
import { patternSentence } from './failure-pattern.ts'
import type { EndEntry } from './entries.ts'

interface EndWords {
  title: string
  /** `calm`: the user wanted it or it is an ordinary limit; `error`: something is broken. */
  tone: 'calm' | 'error'
  /** What can be done. */
  hint?: string
  /** The end's own text says it whole: the title stands only where there is none. */
  saidByText?: true
}

export const END_WORDS: Record<Exclude<EndReason, 'completed'>, EndWords> = {
  cancelled: { title: 'You stopped this.', tone: 'calm', saidByText: true },
  interrupted: { title: 'Interrupted', tone: 'calm', hint: 'Sandlot was stopped while this ran.' },
  max_turns: {
    title: 'Reached the limit of steps',
    tone: 'calm',
    hint: 'Say “go on” to continue.',
    saidByText: true,
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

/** The line above, and what stands below it where there is more to say. `cause`: of an error. */
export function endLines(
  reason: keyof typeof END_WORDS,
  text: string | undefined,
  cause?: ErrorCause,
): string[] {
  const { title: ordinary, hint, saidByText = false } = END_WORDS[reason]
  const title = cause === undefined ? ordinary : CAUSE_WORDS[cause]
  if (saidByText && text !== undefined) return [text]
  const details = text ?? hint
  return details === undefined ? [title] : [title, details]
}

/** That the last calls failed for one cause, unless the end's own text says it already. */
export function failuresSentence({ failures, text }: EndEntry): string | undefined {
  if (failures === undefined) return undefined
  const sentence = patternSentence(failures)
  return text?.includes(sentence) === true ? undefined : sentence
}
