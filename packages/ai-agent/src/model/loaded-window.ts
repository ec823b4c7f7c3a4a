/**
 * Asks a model server of one's own how many tokens of context it has loaded: vLLM, llama.cpp,
 * Ollama, LM Studio. Each is asked where it lists what is loaded; nothing loads a model.
 */
import { boundedFetch } from '@sandlot/shared/node/safe-fetch'
import { z } from 'zod'
import { parseJson } from './json.ts'

const ASK_MS = 3_000
const MOST_BYTES = 4 * 1024 * 1024
const tokens = z.int().positive()

const list = <T extends z.ZodType>(one: T) => z.array(one.nullable().catch(null))
/** vLLM and SGLang, and LM Studio: one shape, with members of their own. */
const openModels = z.object({
  data: list(
    z.object({
      id: z.string(),
      max_model_len: tokens.optional().catch(undefined),
      loaded_context_length: tokens.optional().catch(undefined),
    }),
  ),
})
const ollamaModels = z.object({
  models: list(z.object({ name: z.string(), model: z.string().optional(), context_length: tokens })),
})
const llamaProps = z.object({ default_generation_settings: z.object({ n_ctx: tokens }) })

interface Source {
  /** `root`: the address without the `/v1` of the API. */
  url: (baseUrl: string, root: string, model: string) => string
  read: (body: unknown, model: string) => number | undefined
}

const SOURCES: readonly Source[] = [
  {
    url: (baseUrl) => `${baseUrl}/models`,
    read: (body, model) => openModel(body, model)?.max_model_len,
  },
  {
    url: (_, root) => `${root}/api/v0/models`,
    read: (body, model) => openModel(body, model)?.loaded_context_length,
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

function openModel(body: unknown, model: string) {
  return openModels.safeParse(body).data?.data.find((one) => one?.id === model)
}

/**
 * Tokens of context that the server at `baseUrl` (without a trailing slash) has loaded `model`
 * with. Undefined: it does not say, has not loaded it, or does not answer in time. `headers` carry
 * the key. Never rejects.
 */
export async function loadedWindow(
  baseUrl: string,
  headers: Record<string, string>,
  model: string,
): Promise<number | undefined> {
  const get = boundedFetch(fetch, { maxBytes: MOST_BYTES, timeoutMs: ASK_MS })
  const root = baseUrl.replace(/\/v\d+$/, '')
  const found = await Promise.all(
    SOURCES.map(async ({ url, read }) => {
      try {
        // A redirect would take the key elsewhere.
        const response = await get(url(baseUrl, root, model), { headers, redirect: 'manual' })
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
