/** Prices of models: the operator's own, else the published ones. */
import type { TokenUsage } from '@sandlot/shared/chat/event-meta'
import { modelFacts } from './facts.ts'
import type { Price } from './model.ts'

/**
 * The price of a model at the endpoint `baseUrl`; undefined when unknown. `own`: the operator's, by
 * the model's name at every endpoint, also with the date of a snapshot after it.
 */
export function priceOf(model: string, baseUrl: string, own: Record<string, Price>): Price | undefined {
  const undated = model.replace(/-\d{4}-\d\d-\d\d$/, '')
  const known = [model, undated].find((name) => Object.hasOwn(own, name))
  return known === undefined ? modelFacts(model, baseUrl).price : own[known]
}

/** The price at a moment, in epoch milliseconds. */
export function priceAt(price: Price, moment: number): Price {
  return price.at?.(moment) ?? price
}

/**
 * US dollars of one answer at the moment `at` (epoch milliseconds), or undefined without a price,
 * or where not both input and output were counted. Tokens read from and written to the cache are
 * part of the input, which alone decides on the step. Reasoning is part of the output where the
 * provider counts it so; where it is more than the output, it was counted beside it.
 */
export function costOf(usage: TokenUsage, price: Price | undefined, at: number): number | undefined {
  const { input, output } = usage
  if (price === undefined || input === undefined || output === undefined) return undefined
  const now = priceAt(price, at)
  const rates = now.steps?.findLast(({ above }) => input > above) ?? now
  const cached = Math.min(usage.cached ?? 0, input)
  const written = Math.min(usage.cacheWritten ?? 0, input - cached)
  const hour = Math.min(usage.cacheWrittenHour ?? 0, written)
  const write = rates.cacheWrite ?? rates.input
  const reasoning = usage.reasoning ?? 0
  const words = reasoning > output ? output : output - reasoning
  const millionths =
    (input - cached - written) * rates.input +
    cached * (rates.cached ?? rates.input) +
    (written - hour) * write +
    hour * (rates.cacheWriteHour ?? write) +
    words * rates.output +
    reasoning * (rates.reasoning ?? rates.output)
  return millionths / 1_000_000
}
