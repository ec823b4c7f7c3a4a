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
  /** Absent in a request: the stored one, or for a new model the one that suits the address. */
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

/** `apiKey` absent: unchanged; null: none. */
export const endpointRequest = endpoint.extend({
  apiKey: key.nullish(),
  /** The revision that was seen; 0 for a new one. */
  revision: z.int().nonnegative().default(0),
})

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
  /** Known prices by display name, for endpoint models without a price of their own. */
  knownPrices: z.record(z.string(), price),
  /** The default of chats without a choice. */
  main: z.object({ name: z.string(), demo: z.boolean() }),
})
export type ModelsView = z.infer<typeof modelsView>

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
