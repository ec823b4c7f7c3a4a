/** The event that says what an answer took. */
import { type SessionEvent, metaOf } from '@sandlot/shared/chat/events'
import { type TokenUsage, makeMeta } from '@sandlot/shared/chat/event-meta'
import type { LoopContext } from './context.ts'
import type { Model } from '../model/model.ts'
import { costOf } from '../model/prices.ts'

/**
 * Tokens in the context after this answer, and what it cost. Nothing when the provider did not
 * count.
 */
export function usageEvent(
  ctx: Pick<LoopContext, 'promptId' | 'log' | 'now'>,
  turn: number | undefined,
  model: Model,
  usage: TokenUsage,
): SessionEvent | undefined {
  if (usage.input === undefined && usage.output === undefined) return undefined
  const cost = costOf(usage, model.price, ctx.now())
  const counted = ctx.log().filter((event) => metaOf(event).usage !== undefined)
  const before = counted.reduce((sum, event) => sum + (metaOf(event).cost ?? 0), 0)
  const allKnown = cost !== undefined && counted.every((event) => metaOf(event).cost !== undefined)
  const fields = {
    promptId: ctx.promptId,
    turn,
    usage,
    model: model.name,
    windowFrom: model.window.from,
    cost,
  }
  return {
    sessionUpdate: 'usage_update',
    used: (usage.input ?? 0) + (usage.output ?? 0),
    size: model.window.tokens,
    // ACP means the whole session: a sum without the unknown part would be too small.
    ...(!allKnown ? {} : { cost: { amount: before + cost, currency: 'USD' } }),
    _meta: makeMeta(fields, ctx.now()),
  }
}
