/** The members of a request that ask for thought, by the generation of the model. */
import type { JsonObject } from '../../json.ts'
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
