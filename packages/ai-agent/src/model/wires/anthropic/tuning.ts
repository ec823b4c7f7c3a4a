/**
 * Members of a request that the generation of a model or its endpoint decides: the limit of the
 * answer and thought; and what of a request an endpoint refuses, learnt from its words.
 */
import { limitIn } from '../../context-window.ts'
import { type JsonObject, member } from '../../json.ts'
import type { ModelRequest } from '../../model.ts'
import { messagesTokens, toolsTokens } from '../../tokens.ts'
import type { BodyOptions } from '../wire.ts'

/** One message of the request. */
export interface Turn {
  role: 'user' | 'assistant'
  content: JsonObject[]
}

export function isThought(block: JsonObject | undefined): boolean {
  return block?.['type'] === 'thinking' || block?.['type'] === 'redacted_thinking'
}

/** Tokens of thought for models that take a budget. */
const BUDGETS: Readonly<Record<string, number>> = { low: 4_096, medium: 16_000, high: 32_000 }
/** The provider takes no smaller one. */
const SMALLEST_BUDGET = 1_024

/**
 * `atLength`: the answer may be as long as the model's answers can be; a short one has no room for
 * thought, which counts toward its limit. `limit`: `max_tokens`.
 */
export function thinkingMembers(
  atLength: boolean,
  limit: number,
  turns: readonly Turn[],
  { profile, effort, refused }: BodyOptions,
): JsonObject {
  if (refused.has('thinking') || profile.thinking === 'none') return {}
  const [adaptive, budget] = [refused.has('adaptive'), refused.has('budget')]
  if (adaptive && budget) return {}
  if (budget || (profile.thinking === 'adaptive' && !adaptive)) {
    const display = refused.has('display') ? {} : { display: 'summarized' }
    return {
      ...(atLength ? { thinking: { type: 'adaptive', ...display } } : {}),
      ...(effort === undefined || refused.has(EFFORT + effort) ? {} : { output_config: { effort } }),
    }
  }
  let tokens = BUDGETS[effort ?? ''] ?? 0
  // In steps: another budget makes the provider forget the messages that it has cached.
  while (tokens > limit / 2) tokens /= 2
  if (tokens < SMALLEST_BUDGET || beganWithoutThought(turns)) return {}
  return { thinking: { type: 'enabled', budget_tokens: tokens } }
}

/**
 * True where the answer whose calls are being run does not begin with a thought: with a budget, the
 * provider then refuses to think until the next message of a user.
 */
function beganWithoutThought(turns: readonly Turn[]): boolean {
  const asked = turns.findLastIndex(
    ({ role, content }) => role === 'user' && content.every(({ type }) => type !== 'tool_result'),
  )
  const [first] = turns[asked + 1]?.content ?? []
  return first !== undefined && !isThought(first)
}

/** Beginnings of names among what was refused, with their values. */
const EFFORT = 'effort='
/** Tokens of the longest answer. */
const LIMIT = 'max_tokens='
/** Tokens of request and answer together. */
const WINDOW = 'window='
/** The share of a window that the loop leaves to the answer. */
const ROOM = 0.1
/** The share of a window for what our count of a request leaves out. */
const MARGIN = 1 / 32

function learntValues(refused: BodyOptions['refused'], beginning: string): number[] {
  return [...refused].flatMap((name) =>
    name.startsWith(beginning) ? [Number(name.slice(beginning.length))] : [],
  )
}

/** Tokens that request and answer may have together; infinite where nothing is known. */
function windowOf({ window, refused }: BodyOptions): number {
  return Math.min(window ?? Number.POSITIVE_INFINITY, ...learntValues(refused, WINDOW))
}

/** An estimate, in tokens. */
function requestTokens({ messages, tools = [] }: ModelRequest): number {
  return messagesTokens(messages) + toolsTokens(tools)
}

/**
 * Computes `max_tokens`: the requested limit or the model's longest answer, at most the part of the
 * window that the request leaves free. The minimum is a tenth of the window, because the estimate
 * of the request may be too high.
 */
export function answerLimit(request: ModelRequest, options: BodyOptions): number {
  const { profile, refused } = options
  const window = windowOf(options)
  const left = Number.isFinite(window)
    ? Math.floor(Math.max(window * (1 - MARGIN) - requestTokens(request), window * ROOM))
    : window
  return Math.min(request.maxTokens ?? profile.longestAnswer, left, ...learntValues(refused, LIMIT))
}

/** See `Wire`. Also a range of models that their names do not distinguish is learnt so. */
export function learn(
  words: string,
  body: JsonObject,
  options: BodyOptions,
  request: ModelRequest,
): string | undefined {
  const { refused } = options
  const first = (name: string, pattern: RegExp, sent: boolean): string | undefined =>
    sent && pattern.test(words) && !refused.has(name) ? name : undefined
  const thinking = member(body, 'thinking')
  const type = member(thinking, 'type')
  const effort = member(body['output_config'], 'effort')
  return (
    first(
      'cache_control',
      /cache_control|cache control/i,
      JSON.stringify(body).includes('"cache_control"'),
    ) ??
    first('schema', /\b(?:oneOf|anyOf|allOf)\b/, body['tools'] !== undefined) ??
    first('beta', /anthropic[-_]beta|interleaved|beta (?:header|flag)/i, type === 'enabled') ??
    first('display', /display/i, member(thinking, 'display') !== undefined) ??
    first('budget', /adaptive/i, type === 'enabled') ??
    first('adaptive', /adaptive|thinking/i, type === 'adaptive') ??
    // Others of its levels may be known.
    first(`${EFFORT}${String(effort)}`, /effort|output_config/i, effort !== undefined) ??
    first('thinking', /thinking|budget_tokens/i, thinking !== undefined) ??
    smallerLimit(words, Number(body['max_tokens']), options, request)
  )
}

/** Words of a provider that counted the answer too. */
const OF_ANSWER = /max_?(?:new_|output_|completion_)?tokens|\b(?:completion|output)\b/i
const OF_WINDOW = /context|model_len|n_ctx|sequence length/i
/** A number, and words right before it that make it the largest one. */
const LARGEST =
  /(?:[>≤]|<=|\b(?:maximum|at most|up to|limit|exceeds?|equal to|lower than)\b|\b(?:range|between)\b\D{0,40}\d+)[^\d.;]{0,30}(\d{3,7})(?![\w-])/gi

/** The longest answer that an endpoint takes beside this request, or any. */
function smallerLimit(
  words: string,
  sent: number,
  options: BodyOptions,
  request: ModelRequest,
): string | undefined {
  if (!OF_ANSWER.test(words)) return undefined
  const window = OF_WINDOW.test(words) ? limitIn(words) : undefined
  if (window !== undefined) return smallerWindow(words, sent, window, options, request)
  // `max_tokens: 128000 > 64000, which is the maximum …`
  const numbers = [...words.matchAll(LARGEST)].map(([, digits]) => Number(digits))
  const most = Math.max(...numbers.filter((number) => number < sent))
  return Number.isFinite(most) ? `${LIMIT}${most}` : undefined
}

/**
 * `window` tokens do not hold the request and `sent` tokens of an answer. Undefined where too
 * little is left for an answer: then the request is too long.
 */
function smallerWindow(
  words: string,
  sent: number,
  window: number,
  options: BodyOptions,
  request: ModelRequest,
): string | undefined {
  const numbers = [...words.matchAll(/(?<![\w.-])\d{1,7}(?![\w-])/g)].map(([digits]) => Number(digits))
  const most = Math.max(0, ...numbers.filter((number) => number !== window && number !== sent))
  // The largest number is that of the request, or of both together.
  const left = window - (most > window ? most - sent : most)
  if (left >= sent || left < window * ROOM) return undefined
  const holds = Math.floor(Math.min(window, left + requestTokens(request)))
  return holds < windowOf(options) ? `${WINDOW}${holds}` : undefined
}
