/**
 * Model endpoints that administrators add at runtime: `/api/models`. The agent stores their keys
 * and never returns them.
 */
import { z } from 'zod'

/** The API over which a model is asked. */
export const wireName = z.enum(['chat', 'responses', 'anthropic'])
export type WireName = z.infer<typeof wireName>

/** Their names for people. */
export const API_NAMES: Record<WireName, string> = {
  chat: 'Chat Completions',
  responses: 'Responses',
  anthropic: 'Anthropic Messages',
}

const dollars = z.number().nonnegative().max(1_000_000)

/**
 * US dollars for a million tokens. `cached`: input from the provider's cache; `cacheWrite`: input
 * written to it.
 */
const price = z.strictObject({
  input: dollars,
  output: dollars,
  cached: dollars.optional(),
  cacheWrite: dollars.optional(),
})
export type ModelPrice = z.infer<typeof price>

const endpointModel = z.strictObject({
  /** The endpoint's own name of it. */
  name: z.string().trim().min(1).max(200),
  /** Display name, if another model has the same name. */
  label: z.string().trim().min(1).max(200).optional(),
  /** Tokens. */
  contextWindow: z.int().min(1_000).max(100_000_000).optional(),
  /** It accepts images. */
  images: z.boolean().optional(),
  price: price.optional(),
  wire: wireName.optional(),
  /** False: it sends whole answers only. */
  streaming: z.boolean().optional(),
})

const address = z
  .url({ protocol: /^https?$/, error: 'Give an address that begins with http:// or https://.' })
  .max(500)
const key = z.string().trim().min(1).max(4_096)

export const endpoint = z.strictObject({
  /** Display name. */
  name: z.string().trim().min(1).max(60),
  /** Without the path of an API, such as `/chat/completions`. */
  baseUrl: address,
  models: z.array(endpointModel).min(1).max(100),
})
export type Endpoint = z.infer<typeof endpoint>

/** Unique among the models of a deployment. */
export function shownName({ name, label = name }: { name: string; label?: string | undefined }): string {
  return label
}

/** Members of models that the previous version refuses. Unknown ones of the next are left out. */
const asking = z.object({
  wire: wireName.optional().catch(undefined),
  streaming: z.boolean().optional().catch(undefined),
  cacheWrite: dollars.optional().catch(undefined),
})
/** By the shown name of the model. */
export const askings = z.record(z.string(), asking)
type Askings = z.infer<typeof askings>

/** The previous version refuses models with unknown members, so those are separate from `plain`. */
export function splitAsking<T extends Endpoint>(whole: T): { plain: T; asking: Askings } {
  const parts = whole.models.map(({ wire, streaming, price: rates, ...model }) => {
    if (rates === undefined) return { model, asking: { wire, streaming } }
    const { cacheWrite, ...known } = rates
    return { model: { ...model, price: known }, asking: { wire, streaming, cacheWrite } }
  })
  return {
    plain: { ...whole, models: parts.map(({ model }) => model) },
    asking: Object.fromEntries(parts.map((part) => [shownName(part.model), part.asking])),
  }
}

/** Reverses `splitAsking`. A model that has lost its price has no price of cache writes either. */
export function joinAsking<T extends Endpoint>(plain: T, parts: Askings = {}): T {
  const models = plain.models.map((model) => {
    const { cacheWrite, ...rest } = parts[shownName(model)] ?? {}
    return { ...rest, ...model, price: model.price && { cacheWrite, ...model.price } }
  })
  return { ...plain, models }
}

/**
 * Absent `wire`, `streaming` and `cacheWrite` of a model at the same address are unchanged. `wire`
 * null, or of a new model absent: the one that suits the address. `cacheWrite` null: as `input`.
 */
const changedModel = endpointModel.extend({
  wire: wireName.nullish(),
  price: price.extend({ cacheWrite: dollars.nullish() }).optional(),
})

/** `apiKey` absent: unchanged; null: none. */
export const endpointRequest = endpoint.extend({
  models: z.array(changedModel).min(1).max(100),
  apiKey: key.nullish(),
  /** The revision that was seen; 0 for a new one. */
  revision: z.int().nonnegative().default(0),
})
export type EndpointRequest = z.infer<typeof endpointRequest>

const endpointView = endpoint.extend({ id: z.string(), revision: z.int(), hasKey: z.boolean() })
export type EndpointView = z.infer<typeof endpointView>

export const modelsView = z.object({
  /**
   * Endpoints of the environment and the configuration file: read-only. The first one that answers
   * is used.
   */
  configured: z.array(
    z.object({
      name: z.string(),
      address: z.string(),
      price: price.optional(),
      wire: wireName.optional(),
    }),
  ),
  /** In the order in which they were added. */
  endpoints: z.array(endpointView),
  /** Members that `splitAsking` takes out of `endpoints`, by their ids. */
  asking: z.record(z.string(), askings).default({}),
  /** Known prices by display name, for endpoint models without a price of their own. */
  knownPrices: z.record(z.string(), price),
  /** The default of chats without a choice. */
  main: z.object({ name: z.string(), demo: z.boolean() }),
})
export type ModelsView = z.infer<typeof modelsView>

/** `modelsView` with complete models in `endpoints`. */
export const joinedModelsView = modelsView.transform((view) => ({
  ...view,
  endpoints: view.endpoints.map((one) => joinAsking(one, view.asking[one.id])),
}))

/** `id`: an existing endpoint, whose key is used unless one is given. */
export const endpointTestRequest = z.strictObject({
  baseUrl: address,
  apiKey: key.optional(),
  id: z.string().max(100).optional(),
  /** Absent: only its list of models is requested. */
  model: z.string().trim().min(1).max(200).optional(),
  /** Tried first. Default: the one that suits the address. */
  wire: wireName.optional(),
  /** False: its answer is not streamed. */
  streaming: z.boolean().optional(),
})
export type EndpointTest = z.infer<typeof endpointTestRequest>

export const endpointTestResult = z.object({
  /** Names of its models, if it lists them. */
  models: z.array(z.string()).optional(),
  /** The API over which the model called the tool. Absent: none. */
  wire: wireName.optional(),
  steps: z.array(
    z.object({
      step: z.enum(['list', 'stream', 'tool']),
      ok: z.boolean(),
      /** A sentence. */
      message: z.string(),
      /** Milliseconds. */
      tookMs: z.number(),
    }),
  ),
})
export type EndpointTestResult = z.infer<typeof endpointTestResult>
