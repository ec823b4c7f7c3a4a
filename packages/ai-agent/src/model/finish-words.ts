/** Finish reasons in every provider's words. Only hints: calls decide, not the word. */
import type { ModelAnswer } from './model.ts'

type Finish = ModelAnswer['finish']

// Ordered. Matched anywhere in the word, because proxies put the native word behind their own
// (`content_filter: RECITATION`).
const WORDS: readonly [Finish, RegExp][] = [
  ['tool_calls', /^(?:tool_?calls?|tool_use|function_calls?|requires_action)$/],
  [
    'content_filter',
    /content_filter|safety|toxic|recitation|prohibited|blocklist|^blocked$|^spii$|^language$|^refusal$|^sensitive$|guardrail/,
  ],
  [
    'length',
    /^(?:length|limit|truncated|error_limit|token_limit|time_limit)$|max_(?:output_|completion_)?tokens|model_length|max_length|context_window_exceeded/,
  ],
  [
    'stop',
    /^(?:stop|stop_sequence|stop_token|matched_stop|eos|eos_token|end_turn|end|complete|completed|finish|finished|done|normal)$/,
  ],
]

/** Words that only say "not yet". DashScope sends the text `null`. */
const NOT_YET = new Set(['null', 'none', 'undefined', 'unspecified', 'not_finished', 'in_progress'])

/** Words that say that the provider broke off. The value is what it is classified by. */
const BROKEN: readonly [RegExp, string][] = [
  [/malformed_function_call|unexpected_tool_call|too_many_tool_calls/, 'malformed_function_call'],
  [/missing_thought_signature/, 'missing thought_signature'],
  [/^(?:unknown_)?error(?:_finish)?$|^failed$|^malformed_response$/, 'error'],
  [/^(?:network|server|internal|engine)_error$/, 'network_error'],
  [/^timeout$/, 'timeout'],
  [/insufficient_system_resource|^overloaded$/, 'insufficient_system_resource'],
  [/^(?:abort|aborted|cancelled|canceled)$/, 'aborted'],
]

/**
 * Ours for the provider's word: `unknown` for one never seen, undefined for one that says nothing.
 */
export function finishReason(word: string): Finish | undefined {
  const native = inSnakeCase(word)
  if (native === '' || NOT_YET.has(native)) return undefined
  return WORDS.find(([, pattern]) => pattern.test(native))?.[0] ?? 'unknown'
}

/** The code of a failure that hides in a finish word. */
export function failureWord(word: string): string | undefined {
  const native = inSnakeCase(word)
  return BROKEN.find(([pattern]) => pattern.test(native))?.[1]
}

/** `toolUse` and `tool-use` are `tool_use`; `FINISH_REASON_STOP` is `stop`. */
function inSnakeCase(word: string): string {
  return word
    .trim()
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll(/[-\s]+/g, '_')
    .toLowerCase()
    .replace(/^finish_reason_/, '')
}
