/**
 * Endpoints of models that administrators add while Sandlot runs: `/api/models`. Their keys are
 * kept by the agent and never shown again.
 */
import { z } from 'zod'

const dollars = z.number().nonnegative().max(1_000_000)

/** US dollars for a million tokens. `cached`: of input that came from the provider's cache. */
const price = z.strictObject({ input: dollars, output: dollars, cached: dollars.optional() })
export type ModelPrice = z.infer<typeof price>

const endpointModel = z.strictObject({
  /** As the endpoint calls it. */
  name: z.string().trim().min(1).max(200),
  /** How people see it, where another model is called the same. */
  label: z.string().trim().min(1).max(200).optional(),
  /** Tokens. */
  contextWindow: z.int().min(1_000).max(100_000_000).optional(),
  /** Whether it reads images. */
  images: z.boolean().optional(),
  price: price.optional(),
})

const address = z
  .url({ protocol: /^https?$/, error: 'Give an address that begins with http:// or https://.' })
  .max(500)
const key = z.string().trim().min(1).max(4_096)

export const endpoint = z.strictObject({
  /** For people. */
  name: z.string().trim().min(1).max(60),
  /** Without `/chat/completions`. */
  baseUrl: address,
  models: z.array(endpointModel).min(1).max(100),
})
export type Endpoint = z.infer<typeof endpoint>

/** `apiKey` absent: the one that is there stays; null: none. */
export const endpointRequest = endpoint.extend({
  apiKey: key.nullish(),
  /** Of what was seen; 0 for a new one. */
  revision: z.int().nonnegative().default(0),
})

const endpointView = endpoint.extend({ id: z.string(), revision: z.int(), hasKey: z.boolean() })
export type EndpointView = z.infer<typeof endpointView>

export const modelsView = z.object({
  /** Of the environment and the configuration file: shown, not edited. The first answers. */
  configured: z.array(z.object({ name: z.string(), address: z.string(), price: price.optional() })),
  /** In the order in which they were added. */
  endpoints: z.array(endpointView),
  /** Of the models of endpoints whose price is not entered here: those that are known, by name. */
  knownPrices: z.record(z.string(), price),
  /** What answers where a chat has chosen none. */
  main: z.object({ name: z.string(), demo: z.boolean() }),
})
export type ModelsView = z.infer<typeof modelsView>

/** `id`: of an endpoint that is there, whose key is used where none is given. */
export const endpointTestRequest = z.strictObject({
  baseUrl: address,
  apiKey: key.optional(),
  id: z.string().max(100).optional(),
  /** Absent: only its list of models is asked for. */
  model: z.string().trim().min(1).max(200).optional(),
})
export type EndpointTest = z.infer<typeof endpointTestRequest>

export const endpointTestResult = z.object({
  /** Names of its models, where it has told them. */
  models: z.array(z.string()).optional(),
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
