/**
 * Asks a server how many tokens of context a model has: what a server of one's own has loaded
 * (vLLM, llama.cpp, Ollama, LM Studio), and what a provider lists. Nothing loads a model.
 */
import { boundedFetch } from '@sandlot/shared/node/safe-fetch'
import { z } from 'zod'
import { parseJson } from './json.ts'

const ASK_MS = 3_000
const MOST_BYTES = 4 * 1024 * 1024
const tokens = z.int().positive()

const list = <T extends z.ZodType>(one: T) => z.array(one.nullable().catch(null))
const size = tokens.optional().catch(undefined)
const openModel = z.object({
  id: z.string(),
  /** LM Studio. */
  loaded_context_length: size,
  /** vLLM and SGLang. */
  max_model_len: size,
  /** OpenRouter, Together, Fireworks, Moonshot. */
  context_length: size,
  /** OpenRouter: the provider that most requests go to. */
  top_provider: z.object({ context_length: size }).optional().catch(undefined),
  /** Groq, Vercel. */
  context_window: size,
  /** Mistral. */
  max_context_length: size,
  /** Anthropic. */
  max_input_tokens: size,
})
/** Together has the list alone. */
const openModels = z.union([
  list(openModel),
  z.object({ data: list(openModel) }).transform(({ data }) => data),
])
const geminiModel = z.object({ inputTokenLimit: tokens })
const ollamaModels = z.object({
  models: list(z.object({ name: z.string(), model: z.string().optional(), context_length: tokens })),
})
const llamaProps = z.object({ default_generation_settings: z.object({ n_ctx: tokens }) })

interface Source {
  /** `root`: the address without the `/v1` of the API. */
  url: (baseUrl: string, root: string, model: string) => string
  headers?: (headers: Record<string, string>) => Record<string, string>
  read: (body: unknown, model: string) => number | undefined
}

/** Servers of one's own: what is loaded. */
const LOADED: readonly Source[] = [
  {
    url: (_, root) => `${root}/api/v0/models`,
    read: (body, model) => listed(body, model)?.loaded_context_length,
  },
  {
    // Per slot: a request gets no more. A router would load the model without `autoload=false`.
    url: (_, root, model) => `${root}/props?model=${encodeURIComponent(model)}&autoload=false`,
    read: (body) => llamaProps.safeParse(body).data?.default_generation_settings.n_ctx,
  },
  {
    url: (_, root) => `${root}/api/ps`,
    read: (body, model) => {
      const loaded = ollamaModels.safeParse(body).data?.models ?? []
      const names = [model, `${model}:latest`]
      return loaded.find((one) => one !== null && (names.includes(one.name) || one.model === model))
        ?.context_length
    },
  },
]

const LIST: Source = {
  // Anthropic's address may lack the version.
  url: (baseUrl) => `${baseUrl}${baseUrl.endsWith('anthropic.com') ? '/v1' : ''}/models`,
  read: (body, model) => {
    const one = listed(body, model)
    const sizes = [
      one?.max_model_len,
      one?.context_length,
      one?.top_provider?.context_length,
      one?.context_window,
      one?.max_context_length,
      one?.max_input_tokens,
    ].filter((each) => each !== undefined)
    return sizes.length === 0 ? undefined : Math.min(...sizes)
  },
}

/** Gemini's own API, next to its compatible one, whose list has no sizes; it takes no bearer. */
const GEMINI_API = /\/v1(?:beta)?\/openai$/
const GEMINI: Source = {
  url: (baseUrl, _, model) =>
    `${baseUrl.replace(/\/openai$/, '')}/models/${encodeURIComponent(model.replace(/^.*\//, ''))}`,
  headers: ({ authorization = '', ...others }) => ({
    ...others,
    'x-goog-api-key': authorization.replace(/^Bearer /, ''),
  }),
  read: (body) => geminiModel.safeParse(body).data?.inputTokenLimit,
}

function listed(body: unknown, model: string) {
  const models = openModels.safeParse(body).data
  // Words after the name choose a provider at OpenRouter, as `:nitro`.
  const names = [model, model.replace(/:[a-z]+$/, '')]
  return names.map((name) => models?.find((one) => one?.id === name)).find((one) => one !== undefined)
}

/**
 * Tokens of context that the server at `baseUrl` (without a trailing slash) has loaded `model`
 * with, or lists for it. Undefined: it does not say, has not loaded it, or does not answer in time.
 * `isProvider`: a public service, which is asked for its list alone. `headers` carry the key. Never
 * rejects.
 */
export async function loadedWindow(
  baseUrl: string,
  headers: Record<string, string>,
  model: string,
  isProvider = false,
): Promise<number | undefined> {
  const get = boundedFetch(fetch, { maxBytes: MOST_BYTES, timeoutMs: ASK_MS })
  const root = baseUrl.replace(/\/v\d+$/, '')
  const published = GEMINI_API.test(baseUrl) ? GEMINI : LIST
  const sources = isProvider ? [published] : [...LOADED, published]
  const found = await Promise.all(
    sources.map(async ({ url, read, headers: headersOf = (same) => same }) => {
      try {
        // A redirect would take the key elsewhere.
        const response = await get(url(baseUrl, root, model), {
          headers: headersOf(headers),
          redirect: 'manual',
        })
        if (!response.ok) {
          await response.body?.cancel()
          return undefined
        }
        const json = parseJson(await response.text())
        return json.ok ? read(json.value, model) : undefined
      } catch {
        // No answer is none: then it is not known.
        return undefined
      }
    }),
  )
  return found.find((one) => one !== undefined)
}
