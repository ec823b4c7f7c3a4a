/**
 * Members of a request that the generation of a model or its endpoint decides: the limit of the
 * answer and thought; and what of a request an endpoint refuses, learnt from its words.
 */
import { type JsonObject, member } from '../../json.ts'
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
      ...(effort === undefined || refused.has('effort') ? {} : { output_config: { effort } }),
    }
  }
  const wanted = BUDGETS[effort ?? ''] ?? 0
  const tokens = Math.min(wanted, Math.floor(limit / 2))
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

/** The longest answer that an endpoint takes, among what it refused. */
const LIMIT = 'max_tokens='

/** `max_tokens`: as asked, or as long as the model's answers can be. */
export function answerLimit(asked: number | undefined, { profile, refused }: BodyOptions): number {
  const learnt = [...refused].flatMap((name) =>
    name.startsWith(LIMIT) ? [Number(name.slice(LIMIT.length))] : [],
  )
  return Math.min(asked ?? profile.longestAnswer, ...learnt)
}

/** See `Wire`. Also a range of models that their names do not tell apart is learnt so. */
export function learn(words: string, body: JsonObject, { refused }: BodyOptions): string | undefined {
  const first = (name: string, pattern: RegExp, sent: boolean): string | undefined =>
    sent && pattern.test(words) && !refused.has(name) ? name : undefined
  const thinking = member(body, 'thinking')
  const type = member(thinking, 'type')
  return (
    first(
      'cache_control',
      /cache_control|cache control/i,
      JSON.stringify(body).includes('"cache_control"'),
    ) ??
    first('schema', /\b(?:oneOf|anyOf|allOf)\b/, body['tools'] !== undefined) ??
    first('display', /display/i, member(thinking, 'display') !== undefined) ??
    first('budget', /adaptive/i, type === 'enabled') ??
    first('adaptive', /adaptive|thinking/i, type === 'adaptive') ??
    first('effort', /effort|output_config/i, body['output_config'] !== undefined) ??
    first('thinking', /thinking|budget_tokens/i, thinking !== undefined) ??
    smallerLimit(words, body['max_tokens'])
  )
}

/** `max_tokens: 128000 > 64000, which is the maximum …`: the largest number below the one sent. */
function smallerLimit(words: string, sent: unknown): string | undefined {
  if (!/max_?(?:output_|completion_)?tokens|output tokens/i.test(words)) return undefined
  const numbers = [...words.matchAll(/(?<![\w.-])\d{3,7}(?![\w-])/g)].map(([digits]) => Number(digits))
  const most = Math.max(...numbers.filter((number) => number < Number(sent) && number > STATUS))
  return Number.isFinite(most) ? `${LIMIT}${most}` : undefined
}

/** Smaller numbers in these words are statuses. */
const STATUS = 600
