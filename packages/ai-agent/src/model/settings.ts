/** Settings of models: the sections `models` and `prices` of the configuration file. */
import { type WireName, wireName } from '@sandlot/shared/account/models-api'
import { messageOf } from '@sandlot/shared/base/errors'
import { z } from 'zod'
import type { Price } from './model.ts'
import { priceOf } from './prices.ts'
import type { Profile } from './profiles.ts'
import type { SilenceLimits } from './sse.ts'

const dollars = z.number().nonnegative()
const price = z.strictObject({
  input: dollars,
  output: dollars,
  cached: dollars.optional(),
  cacheWrite: dollars.optional(),
  reasoning: dollars.optional(),
})

/** The section `prices`: US dollars for a million tokens, by the model's name. */
export const pricesSection = z.record(z.string(), price)

/** The deployment's corrections to profiles.ts. Absent members stay as they are. */
const profile = z.strictObject({
  thinkTags: z.array(z.tuple([z.string().min(1), z.string().min(1)])).optional(),
  cumulative: z.boolean().optional(),
  reasoning: z
    .strictObject({
      when: z.enum(['never', 'with_calls', 'always']),
      fields: z.array(z.string()).optional(),
      missing: z.strictObject({ field: z.string(), text: z.string() }).optional(),
    })
    .optional(),
  extraContent: z.boolean().optional(),
  maxTokensName: z.enum(['max_tokens', 'max_completion_tokens']).optional(),
  thoughtLevels: z.array(z.string().min(1).max(32)).max(10).optional(),
})

const aboutModel = {
  contextWindow: z.int().min(1_000).optional(),
  /** True if it reads images. */
  images: z.boolean().optional(),
  profile: profile.optional(),
  /** The API to begin with. Default: the one that suits the address. */
  wire: wireName.optional(),
  /** False: the endpoint cannot stream. */
  streaming: z.boolean().optional(),
}

const another = z.strictObject({
  name: z.string().min(1),
  /** Distinguishes it, for people and the log, from another model of the same name. */
  label: z.string().min(1).optional(),
  /** Default: as OPENAI_BASE_URL, with its key. */
  baseUrl: z.url({ protocol: /^https?$/ }).optional(),
  /** File with the key. */
  apiKeyFile: z.string().optional(),
  ...aboutModel,
})

/**
 * The section `models`. `main`: about the model of OPENAI_MODEL; `choices`: what a session may
 * choose instead of it; `fallbacks`: asked in this order when the one before is overloaded,
 * throttled or has no quota left. A fallback that is a name is one of the choices, or the main
 * model.
 */
export const modelsSection = z.strictObject({
  main: z.strictObject(aboutModel).optional(),
  choices: z.array(another).optional(),
  fallbacks: z.array(z.union([z.string(), another], 'must be a model, or the name of a choice')).optional(),
})

/** One model as it is asked. */
export interface ModelSettings {
  baseUrl: string
  apiKey: string
  name: string
  label?: string
  contextWindow?: number
  profile?: Partial<Profile>
  price?: Price
  wire?: WireName
  streaming?: boolean
}

export interface ModelsSettings {
  main: ModelSettings
  choices: ModelSettings[]
  /** One that is also the main model or a choice is the same object. */
  fallbacks: ModelSettings[]
  silence: SilenceLimits
}

interface Sections {
  models?: z.output<typeof modelsSection> | undefined
  prices?: z.output<typeof pricesSection> | undefined
}

/** All models together. Each problem is a sentence; `readFile` reads the keys. */
export function readModels(
  main: { baseUrl: string; apiKey: string; name: string },
  { models = {}, prices = {} }: Sections,
  readFile: (path: string) => string,
  problems: string[],
): Omit<ModelsSettings, 'silence'> {
  const own = prices as Record<string, Price>
  const read = (one: z.output<typeof another>, place: string): ModelSettings => {
    const baseUrl = one.baseUrl ?? main.baseUrl
    // The main key is for the main address, and goes nowhere else.
    let apiKey = baseUrl === main.baseUrl ? main.apiKey : ''
    if (one.apiKeyFile !== undefined) {
      try {
        apiKey = readFile(one.apiKeyFile).trimEnd()
      } catch (error) {
        problems.push(`models.${place}.apiKeyFile: cannot read ${one.apiKeyFile} (${messageOf(error)})`)
      }
    }
    const label = one.label === undefined ? {} : { label: one.label }
    return { baseUrl, apiKey, name: one.name, ...label, ...about(one, priceOf(one.name, baseUrl, own)) }
  }
  const first = { ...main, ...about(models.main ?? {}, priceOf(main.name, main.baseUrl, own)) }
  const choices = (models.choices ?? []).map((one, place) => read(one, `choices.${place}`))
  const chosen = [first, ...choices]
  const fallbacks = (models.fallbacks ?? []).flatMap((one, place) => {
    if (typeof one !== 'string') return [read(one, `fallbacks.${place}`)]
    const named = chosen.find((other) => called(other) === one)
    if (named === undefined)
      problems.push(
        `models.fallbacks.${place}: there is no choice ${one}; name one of models.choices, or describe the model here`,
      )
    return named === undefined ? [] : [named]
  })
  const names = [...new Set([...chosen, ...fallbacks])].map(called)
  for (const name of new Set(names.filter((one, place) => names.indexOf(one) !== place)))
    problems.push(`models: two models are called ${name}; give one of them a label, or name it only once`)
  return { main: first, choices, fallbacks }
}

function called({ label, name }: ModelSettings): string {
  return label ?? name
}

function about(
  set: z.output<z.ZodObject<typeof aboutModel>>,
  price: Price | undefined,
): Pick<ModelSettings, 'contextWindow' | 'profile' | 'price' | 'wire' | 'streaming'> {
  const known = set.profile as Partial<Profile> | undefined
  return {
    contextWindow: set.contextWindow,
    wire: set.wire,
    streaming: set.streaming,
    profile: set.images === undefined ? known : { ...known, images: set.images },
    price,
  }
}

/** The problem of a limit in dollars in the configuration: models without a known price. */
export function unpriced(models: readonly ModelSettings[]): string[] {
  return [...new Set(models)]
    .filter(({ price }) => price === undefined)
    .map(
      ({ name }) =>
        `prices: there is a limit in dollars and no price of ${name}; add "${name}": {"input": …, "output": …} (dollars for a million tokens), or limit tokens instead`,
    )
}
