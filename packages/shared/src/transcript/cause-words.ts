/** Display texts of model errors and aborted prompts: on the page, and in an editor. */
import type { ErrorCause, ModelErrorClass } from '../chat/reasons.ts'
import type { SandlotEvent } from '../chat/sandlot-event.ts'

/** A line, without a full stop. */
export const CAUSE_WORDS: Record<ErrorCause, string> = {
  rate_limit: 'The provider is limiting requests',
  quota: 'The provider’s quota is used up',
  auth: 'The provider refused the key',
  invalid_request: 'The provider refused the request',
  invalid_history: 'The provider refused the conversation',
  replay_refused: 'The provider refused the reasoning of earlier answers',
  context_overflow: 'The conversation is too long for the model',
  request_too_large: 'The request is too large for the provider',
  content_filter: 'The provider’s filter refused this',
  overloaded: 'The model is overloaded',
  server_error: 'The provider failed',
  provider_error: 'The provider failed',
  timeout: 'The model didn’t answer in time',
  stream_interrupted: 'The connection to the model was lost',
  protocol: 'The provider’s answer couldn’t be read',
  malformed_tool_call: 'The model’s tool call couldn’t be read',
  tool_use_failed: 'The model’s tool call couldn’t be read',
  unreachable: 'The model can’t be reached',
  failed_call: 'A call failed',
  given_up: 'Sandlot restarted too often while this ran',
  internal: 'Something went wrong in Sandlot',
}

const CUT_WORDS: ReadonlyMap<string, string> = new Map([
  ...Object.entries(CAUSE_WORDS),
  ['chanting', 'The model repeated itself'],
  ['written_call', 'The model wrote its call as text'],
  ['interrupted', 'Sandlot was restarted'],
])

/** The reason of a cut answer, by the `why` of its withdrawal. One line, without a full stop. */
export function cutWords(why: string): string {
  return CUT_WORDS.get(why) ?? CAUSE_WORDS.internal
}

/** A failed request to the model that is retried. */
export interface ModelWait {
  why: ModelErrorClass
  /** The number of the next retry, from 1, and the maximum. */
  retry: number
  of: number
}

/**
 * Whole seconds until `until`, both in epoch milliseconds; limited to the wait, in case the clocks
 * differ.
 */
export function secondsLeft({ until, waitMs }: { until: number; waitMs: number }, now: number): number {
  return Math.max(0, Math.ceil(Math.min(until - now, waitMs) / 1_000))
}

/** `seconds`: until the next request; 0: it has been sent. One line, without a full stop. */
export function waitWords({ why, retry, of }: ModelWait, seconds: number): string {
  const again = seconds > 0 ? `retrying in ${seconds} s` : 'retrying'
  return `${CAUSE_WORDS[why]}; ${again}, ${retry} of ${of}`
}

/** Events next to the conversation with display texts: on the page, and in an editor. */
export type NoteEvent = Extract<
  SandlotEvent,
  { type: 'compacted' | 'history_mended' | 'model_changed' | 'tools_left_out' | 'window_learnt' }
>

/** Reasons for another model: the error classes after which the agent switches to the next one. */
const BECAUSE: ReadonlyMap<string, string> = new Map([
  ['overloaded', 'the previous model was overloaded'],
  ['rate_limit', 'the previous model was limiting requests'],
  ['quota', 'the previous model had no quota left'],
  ['not_allowed', 'you no longer have access to the chosen model'],
])

/** A line, without a full stop. */
export function noteWords(event: NoteEvent): string {
  if (event.type === 'compacted') {
    return event.summary === ''
      ? 'Older results were dropped to free up context'
      : 'Earlier messages were summarised to free up context'
  }
  if (event.type === 'history_mended')
    return 'The provider refused the reasoning of earlier answers. The model continues without it'
  if (event.type === 'window_learnt') return learntWords(event)
  if (event.type === 'tools_left_out')
    return `Too many tools for one request: some from ${event.servers.join(', ')} were left out`
  const because = event.why === undefined ? undefined : BECAUSE.get(event.why)
  return because === undefined
    ? `Answered by ${event.model} from here on`
    : `Answered by ${event.model} because ${because}`
}

function learntWords({ model, tokens, why }: Extract<NoteEvent, { type: 'window_learnt' }>): string {
  const lost = why === 'counted' ? ' and cut off the beginning of longer conversations' : ''
  return `${model} has room for only ${tokens.toLocaleString('en')} tokens${lost}; ask your administrator for a larger context window`
}
