/**
 * Published facts about models: prices and context windows, from the data that
 * `@pydantic/genai-prices` ships. No request is sent.
 */
import { createRequire } from 'node:module'
import type * as Library from '@pydantic/genai-prices'
import { isPrivateHost } from '@sandlot/shared/node/addresses'
import type { Price } from './model.ts'

/** Vendors that alone serve their models, so that a name gives the price at any public address. */
const SOLE_VENDORS: ReadonlySet<string> = new Set(['anthropic', 'openai', 'google', 'x-ai'])
/** Their open models, and builds of others under a tag (`:14b`). */
const NOT_THEIRS = /^gpt-oss|:/i

const require = createRequire(import.meta.url)

/** Loads the data with the first lookup: it takes 40 ms and 20 MB. */
function loadLibrary(): typeof Library {
  return require('@pydantic/genai-prices') as typeof Library
}

interface ModelFacts {
  /** List price of the ordinary (not batch, not priority) service. Absent: unknown. */
  price?: Price
  /** Tokens. Absent: unknown. */
  contextWindow?: number
}

/**
 * Facts about the model `name` (as the endpoint calls it) at the endpoint `baseUrl` (a URL; throws
 * `TypeError` otherwise). What is unknown is absent.
 *
 * - A private host (localhost, a private address, a name without a dot or below `.internal`) has
 *   no facts: what runs there is not the vendor's service, whatever its name.
 * - The host of a known provider: this provider's facts for the name, with or without the date of a
 *   snapshot, after a path at Google (`models/…`, `google/…`). An Azure deployment is known if it
 *   has its model's name. `:free` costs nothing at OpenRouter.
 * - Another public host: the vendor's own facts for Claude, GPT, Gemini and Grok, also after a path
 *   (`anthropic/…`). Open models have another price at every provider, so theirs is unknown.
 * - A window that this misses: see `windowOfVendor`.
 */
export function modelFacts(name: string, baseUrl: string): ModelFacts {
  if (!isPublic(baseUrl)) return {}
  const { calcPrice } = loadLibrary()
  const providerId = findProviderId(baseUrl)
  const id =
    providerId === undefined || providerId === 'google' ? name.slice(name.lastIndexOf('/') + 1) : name
  const lookup = (timestamp?: Date) => calcPrice({}, id, { providerId, timestamp })
  const found = lookup()
  const soldAlone = SOLE_VENDORS.has(found?.provider.id ?? '') && !NOT_THEIRS.test(id)
  if (providerId === undefined && !soldAlone) return {}
  const contextWindow =
    found?.model.context_window ?? windowOfVendor(name, providerId ?? found?.provider.id ?? '')
  if (providerId === 'openrouter' && name.endsWith(':free'))
    return { price: { input: 0, output: 0 }, contextWindow }
  if (found === null) return { contextWindow }
  const { model, model_price } = found
  const price = priceFrom(model_price)
  const changes = Array.isArray(model.prices)
  const at = (moment: number): Price | undefined =>
    priceFrom(lookup(new Date(moment))?.model_price ?? model_price)
  return {
    price: price === undefined || !changes ? price : { ...price, at },
    contextWindow,
  }
}

/** True if prices are published for `baseUrl`: it is a public service, no server of one's own. */
export function isKnownProvider(baseUrl: string): boolean {
  return isPublic(baseUrl) && findProviderId(baseUrl) !== undefined
}

function isPublic(baseUrl: string): boolean {
  const { hostname } = new URL(baseUrl)
  return !isPrivateHost(hostname) && hostname.includes('.')
}

function findProviderId(baseUrl: string): string | undefined {
  return loadLibrary().findProvider({ providerApiUrl: new URL(baseUrl).href })?.id
}

/**
 * Tokens of a model's window at its vendor, else at OpenRouter, which both name it; only where the
 * vendor serves it, or OpenRouter, which goes to the vendor. Other hosts may serve less of it.
 */
function windowOfVendor(name: string, providerId: string): number | undefined {
  const slash = name.lastIndexOf('/')
  const vendor = providerId === 'openrouter' ? name.slice(0, Math.max(slash, 0)) : providerId
  if (vendor === '') return undefined
  const id = name.slice(slash + 1)
  const { calcPrice } = loadLibrary()
  const windowAt = (at: string, model: string): number | undefined =>
    calcPrice({}, model, { providerId: at })?.model.context_window
  return windowAt(vendor, id) ?? windowAt('openrouter', `${vendor}/${id}`)
}

/** The table's prices as ours. A price of each request, on top of its tokens, counts as unknown. */
function priceFrom(prices: Library.ModelPrice): Price | undefined {
  const rates = ratesFrom(prices, 0)
  if (rates === undefined || prices['requests_kcount'] !== undefined) return undefined
  const starts = Object.values(prices).flatMap((rate) =>
    typeof rate === 'object' ? rate.tiers.map(({ start }) => start) : [],
  )
  const steps = [...new Set(starts)]
    .toSorted((a, b) => a - b)
    .map((above) => ({ above, ...rates, ...ratesFrom(prices, above + 1) }))
  return steps.length === 0 ? rates : { ...rates, steps }
}

/** Rates of a request with this many tokens of input. */
function ratesFrom(prices: Library.ModelPrice, tokens: number): Price | undefined {
  const rateOf = (key: string): number | undefined => {
    const rate = prices[key]
    return typeof rate === 'object'
      ? (rate.tiers.findLast(({ start }) => tokens > start)?.price ?? rate.base)
      : rate
  }
  const input = rateOf('input_mtok')
  const output = rateOf('output_mtok')
  if (input === undefined || output === undefined) return undefined
  return {
    input,
    output,
    cached: rateOf('cache_read_mtok'),
    cacheWrite: rateOf('cache_write_mtok'),
    cacheWriteHour: rateOf('cache_write_1h_mtok'),
    reasoning: rateOf('output_reasoning_mtok'),
  }
}
