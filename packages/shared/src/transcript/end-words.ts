/** Display texts of the end of a prompt. */
import { CAUSE_WORDS } from './cause-words.ts'
import type { EndReason, ErrorCause } from '../chat/reasons.ts'
import { patternSentence } from './failure-pattern.ts'
import type { EndEntry } from './entries.ts'

interface EndWords {
  title: string
  /** `calm`: requested by the user, or an ordinary limit; `error`: something is broken. */
  tone: 'calm' | 'error'
  /** The next step. */
  hint?: string
  /** The end's own text is complete: the title is shown only without it. */
  saidByText?: true
}

export const END_WORDS: Record<Exclude<EndReason, 'completed'>, EndWords> = {
  cancelled: { title: 'You stopped this.', tone: 'calm', saidByText: true },
  interrupted: { title: 'Interrupted', tone: 'calm', hint: 'Sandlot stopped while this ran.' },
  max_turns: {
    title: 'Step limit reached',
    tone: 'calm',
    hint: 'Say “go on” to continue.',
    saidByText: true,
  },
  budget: { title: 'Stopped: budget used up', tone: 'calm' },
  loop: { title: 'Stopped: the model repeated itself', tone: 'calm' },
  length: {
    title: 'The answer hit the model’s length limit',
    tone: 'calm',
    hint: 'Say “go on” to continue.',
  },
  refusal: { title: 'The model declined to answer', tone: 'calm' },
  error: { title: 'Something went wrong', tone: 'error' },
}

/** The title, and the text below it, if any. `cause`: of an error. */
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

const CHECK_SETTINGS = {
  page: 'Check its address, and the name of the model.',
  configuration:
    'Check OPENAI_BASE_URL and OPENAI_MODEL, or the model’s entry in the configuration file, and restart Sandlot.',
}
const CHECK_KEY = {
  page: 'Replace its key.',
  configuration:
    'Set OPENAI_API_KEY, or the key file of the model’s entry in the configuration file, to a valid key, and restart Sandlot.',
}
const CHECK_TOOL_CALLING =
  'Check the tool calling of the model’s server (vLLM: --enable-auto-tool-choice with the --tool-call-parser of this model; llama.cpp: --jinja; LM Studio and Ollama: a template with tools).'

/** The reader's next step, where a setting may have caused the error. */
export function endAdvice(
  { cause, setIn }: Pick<EndEntry, 'cause' | 'setIn'>,
  isAdmin: boolean,
): string | undefined {
  const isToolCalling = cause === 'malformed_tool_call' || cause === 'tool_use_failed'
  if (setIn === undefined && !isToolCalling) return undefined
  if (!isAdmin) return 'Ask your administrator to check the model’s settings.'
  if (isToolCalling) return CHECK_TOOL_CALLING
  return (cause === 'auth' ? CHECK_KEY : CHECK_SETTINGS)[setIn ?? 'configuration']
}

/** The common cause of the last failures, unless the end's own text contains it. */
export function failuresSentence({ failures, text }: EndEntry): string | undefined {
  if (failures === undefined) return undefined
  const sentence = patternSentence(failures)
  return text?.includes(sentence) === true ? undefined : sentence
}
