/** Members of a request that an endpoint refuses, learnt from its words. */
import { type JsonObject, member } from '../../json.ts'
import type { BodyOptions } from '../wire.ts'

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
