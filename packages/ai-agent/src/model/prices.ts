/**
 * Prices of models. A short table of our own, for names that mean the same everywhere; the
 * configuration adds and overrides.
 */
import type { TokenUsage } from '@sandlot/shared/chat/event-meta'
import type { Price } from './model.ts'

/**
 * US dollars for a million tokens, of the ordinary (not batch, not priority) service. In November
 * 2026 they agreed with public tables made elsewhere between March and August 2026; they were not
 * compared with the provider's own pages. Prices change: what matters to you, set yourself.
 */
const PRICES: Record<string, Price> = {
  'gpt-5': { input: 1.25, cached: 0.125, output: 10 },
  'gpt-5-mini': { input: 0.25, cached: 0.025, output: 2 },
  'gpt-5-nano': { input: 0.05, cached: 0.005, output: 0.4 },
  'gpt-4.1': { input: 2, cached: 0.5, output: 8 },
  'gpt-4.1-mini': { input: 0.4, cached: 0.1, output: 1.6 },
  'gpt-4.1-nano': { input: 0.1, cached: 0.025, output: 0.4 },
  'gpt-4o': { input: 2.5, cached: 1.25, output: 10 },
  'gpt-4o-mini': { input: 0.15, cached: 0.075, output: 0.6 },
  o3: { input: 2, cached: 0.5, output: 8 },
  'o4-mini': { input: 1.1, cached: 0.275, output: 4.4 },
}

/**
 * The price of a model by its name, also with the date of a snapshot behind it; undefined when
 * unknown.
 */
export function priceOf(model: string, own: Record<string, Price> = {}): Price | undefined {
  const base = model.replace(/-\d{4}-\d\d-\d\d$/, '')
  for (const table of [own, PRICES]) {
    const known = [model, base].find((name) => Object.hasOwn(table, name))
    if (known !== undefined) return table[known]
  }
  return undefined
}

/**
 * US dollars of one answer, or undefined without a price, or where not both input and output were
 * counted. Cached tokens are part of the input. Reasoning is part of the output where the provider
 * counts it so; where it is more than the output, it was counted beside it.
 */
export function costOf(usage: TokenUsage, price: Price | undefined): number | undefined {
  const { input, output } = usage
  if (price === undefined || input === undefined || output === undefined) return undefined
  const cached = Math.min(usage.cached ?? 0, input)
  const reasoning = usage.reasoning ?? 0
  const words = reasoning > output ? output : output - reasoning
  const millionths =
    (input - cached) * price.input +
    cached * (price.cached ?? price.input) +
    words * price.output +
    reasoning * (price.reasoning ?? price.output)
  return millionths / 1_000_000
}
