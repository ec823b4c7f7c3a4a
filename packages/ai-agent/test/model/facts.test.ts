/** Facts about models: whose name counts at which address, and prices as their source computes them. */
import { createRequire } from 'node:module'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isKnownProvider, modelFacts } from '../../src/model/facts.ts'
import { costOf } from '../../src/model/prices.ts'

const OPENAI = 'https://api.openai.com/v1'
const ANTHROPIC = 'https://api.anthropic.com/v1'
const GEMINI = 'https://generativelanguage.googleapis.com/v1beta/openai'
const VERTEX = 'https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi'
const XAI = 'https://api.x.ai/v1'
const OPENROUTER = 'https://openrouter.ai/api/v1'
const AZURE = 'https://ours.openai.azure.com/openai/v1'
const BEDROCK = 'https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1'
const GROQ = 'https://api.groq.com/openai/v1'
const RELAY = 'https://llm.example.org/v1'

test('the data is not loaded for an endpoint of our own', () => {
  const { cache } = createRequire(import.meta.url)
  const loaded = () => Object.keys(cache).filter((path) => path.includes('genai-prices'))
  // A file before this one may have loaded it.
  for (const path of loaded()) delete cache[path]
  modelFacts('gpt-4o', 'http://127.0.0.1:8000/v1')
  expect(loaded()).toEqual([])
  modelFacts('gpt-4o', OPENAI)
  expect(loaded()).toHaveLength(1)
})

describe('a name', () => {
  test.each([
    ['gpt-4o', OPENAI, 2.5],
    ['gpt-4o-2024-08-06', OPENAI, 2.5],
    ['gpt-4o-20240806', OPENAI, 2.5],
    ['gpt-4o-2024-05-13', OPENAI, 5],
    ['claude-opus-4-5', ANTHROPIC, 5],
    ['claude-opus-4-5-20251101', ANTHROPIC, 5],
    ['gemini-2.5-flash', GEMINI, 0.3],
    ['models/gemini-2.5-flash', GEMINI, 0.3],
    ['google/gemini-2.5-flash', VERTEX, 0.3],
    ['grok-4', XAI, 3],
    ['openai/gpt-5.5', OPENROUTER, 5],
    ['anthropic/claude-opus-4.5', OPENROUTER, 5],
    ['openai/gpt-oss-120b', GROQ, 0.15],
    ['gpt-4o', AZURE, 2.5],
    ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', BEDROCK, 3.3],
    ['openai.gpt-oss-120b-1:0', BEDROCK, 0.15],
    // Free of charge, not the paid model of the name before the suffix.
    ['openai/gpt-oss-120b:free', OPENROUTER, 0],
    ['not/in-the-table:free', OPENROUTER, 0],
    // Relays: what only its vendor serves.
    ['claude-opus-4-5', RELAY, 5],
    ['anthropic/claude-opus-4-5', RELAY, 5],
    ['gpt-4o', 'https://eu.api.openai.com/v1', 2.5],
  ])('%s at %s costs %d dollars', (name, baseUrl, input) => {
    expect(modelFacts(name, baseUrl).price?.input).toBe(input)
  })

  test.each([
    ['home-made', OPENAI],
    ['gpt-99', OPENAI],
    ['constructor', OPENAI],
    ['claude-opus-4-5', OPENAI],
    ['openai/gpt-5.5:nitro', OPENROUTER],
    ['openrouter/auto', OPENROUTER],
    ['our-deployment', AZURE],
    ['arn:aws:bedrock:us-east-1:1:application-inference-profile/x', BEDROCK],
    // Open models: each provider has its own price.
    ['gpt-oss-120b', RELAY],
    ['openai/gpt-oss-120b', RELAY],
    ['deepseek-r1:14b', RELAY],
    ['deepseek-chat', RELAY],
    ['kimi-k2', RELAY],
    ['claude-opus-4-5:free', RELAY],
  ])('%s at %s is unknown', (name, baseUrl) => {
    expect(modelFacts(name, baseUrl)).toEqual({})
  })

  test.each([
    'http://localhost:11434/v1',
    'http://127.0.0.1:8000/v1',
    'http://[::1]:8000/v1',
    'http://10.0.0.5:8000/v1',
    'http://192.168.1.2/v1',
    'http://100.64.0.7:8000/v1',
    'http://[fd00::1]:8000/v1',
    'http://host.docker.internal:11434/v1',
    'http://litellm:4000/v1',
    'http://gpu.local:8000/v1',
  ])('has no vendor’s price at %s', (baseUrl) => {
    for (const name of ['gpt-4o', 'gpt-oss-120b', 'claude-opus-4-5', 'gemini-2.5-flash', 'x:free'])
      expect(modelFacts(name, baseUrl)).toEqual({})
  })
})

test('a price for each request, on top of tokens, makes a price unknown; the window stays known', () => {
  expect(modelFacts('sonar-pro', 'https://api.perplexity.ai').price).toBeUndefined()
  expect(modelFacts('claude-opus-4-5', ANTHROPIC).contextWindow).toBe(200_000)
})

test.each([
  // The vendor's row has none: OpenRouter's for the vendor.
  ['gemini-2.5-pro', GEMINI, 1_048_576],
  ['models/gemini-3.1-pro-preview', GEMINI, 1_048_576],
  ['google/gemini-2.5-pro', VERTEX, 1_048_576],
  ['gemini-2.5-pro', RELAY, 1_048_576],
  // OpenRouter's has none, or it has no row: the vendor's.
  ['moonshotai/kimi-k2.5', OPENROUTER, 262_144],
  ['minimax/minimax-m2', OPENROUTER, 204_800],
  ['x-ai/grok-4', OPENROUTER, 256_000],
  ['x-ai/grok-4.1-fast:free', OPENROUTER, 2_000_000],
  // Its own comes first.
  ['google/gemini-3.5-flash', OPENROUTER, 1_048_576],
  ['gemini-3.5-flash', GEMINI, 1_000_000],
  // Another host may serve less of an open model, and vendors' names are not mixed.
  ['llama-3.3-70b-versatile', GROQ, undefined],
  ['moonshotai/kimi-k2.5', 'https://api.together.xyz/v1', undefined],
  ['kimi-k2.5', RELAY, undefined],
  ['kimi-k2.5', OPENROUTER, undefined],
  ['openai/kimi-k2.5', OPENROUTER, undefined],
  ['gemini-2.5-pro', OPENAI, undefined],
])('%s at %s holds %s tokens', (name, baseUrl, tokens) => {
  expect(modelFacts(name, baseUrl).contextWindow).toBe(tokens)
})

test('the window of another row brings no price', () => {
  expect(modelFacts('x-ai/grok-4', OPENROUTER)).toEqual({ contextWindow: 256_000 })
  expect(modelFacts('gemini-2.5-pro', GEMINI).price?.input).toBe(1.25)
})

test('a provider is known by its public host', () => {
  const known = [OPENAI, GEMINI, OPENROUTER, AZURE, GROQ, 'https://api.mistral.ai/v1'].map(isKnownProvider)
  expect(known).not.toContain(false)
  expect([RELAY, 'http://127.0.0.1:8000/v1', 'http://litellm:4000/v1'].map(isKnownProvider)).not.toContain(
    true,
  )
})

test('what is written to the cache has its price, and for an hour another', () => {
  expect(modelFacts('claude-opus-4-5', ANTHROPIC).price).toMatchObject({
    cached: 0.5,
    cacheWrite: 6.25,
    cacheWriteHour: 10,
  })
})

test('a price follows the date and the time of day', () => {
  const { price } = modelFacts('deepseek-v4-pro', 'https://api.deepseek.com')
  const usage = { input: 1_000_000, output: 0 }
  expect(costOf(usage, price, Date.parse('2026-11-30T02:00Z'))).toBe(1.32)
  expect(costOf(usage, price, Date.parse('2026-11-30T05:00Z'))).toBe(0.66)
  expect(modelFacts('gpt-4o', OPENAI).price?.at).toBeUndefined()
})

test('property: every answer costs what the library computes: models, steps, caches, moments', async () => {
  const { calcPrice, findProvider } = await import('@pydantic/genai-prices')
  const hosts = [OPENAI, ANTHROPIC, GEMINI, XAI, OPENROUTER, AZURE, BEDROCK, GROQ, 'https://api.deepseek.com']
  const models = hosts.flatMap((baseUrl) => {
    const provider = findProvider({ providerApiUrl: baseUrl })
    return (provider?.models ?? []).map(({ id }) => ({ baseUrl, id, providerId: provider?.id }))
  })
  const known = models.filter(({ id, baseUrl }) => modelFacts(id, baseUrl).price !== undefined)
  expect(known.length).toBeGreaterThan(800)
  const tokens = fc.oneof(
    fc.nat(1_000),
    fc.nat(1_500_000),
    fc.constantFrom(199_999, 200_000, 200_001, 272_000),
  )
  const usages = fc.record({
    fresh: tokens,
    cached: tokens,
    minutes: tokens,
    hour: tokens,
    output: tokens,
    reasoning: fc.nat(100),
  })
  const moments = fc.date({
    min: new Date('2026-08-01'),
    max: new Date('2027-02-01'),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(fc.constantFrom(...known), usages, moments, (model, parts, moment) => {
      const { id, baseUrl, providerId } = model
      const { cached, reasoning } = parts
      const written = parts.minutes + parts.hour
      const [input, output] = [parts.fresh + cached + written, parts.output + reasoning]
      const usage = { input, output, cached, cacheWritten: written, cacheWrittenHour: parts.hour, reasoning }
      const counted = {
        input_tokens: input,
        output_tokens: output,
        cache_read_tokens: cached,
        cache_write_tokens: written,
        cache_write_1h_tokens: parts.hour,
        output_reasoning_tokens: reasoning,
      }
      const theirs = calcPrice(counted, id, { providerId, timestamp: moment })?.total_price
      const free = id.endsWith(':free') ? 0 : undefined
      const ours = costOf(usage, modelFacts(id, baseUrl).price, moment.getTime())
      expect(ours).toBeCloseTo(free ?? theirs ?? Number.NaN, 9)
    }),
    { numRuns: 400 },
  )
})
