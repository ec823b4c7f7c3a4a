/** A model of an endpoint as it is typed, and addresses that people need not look up. */
import type { Endpoint, EndpointRequest, WireName } from '@sandlot/shared/account/models-api'

interface Preset {
  id: string
  /** Empty: none of these. */
  name: string
  baseUrl: string
  hint?: string
}

const LOCAL = 'As reachable from the server. With compose, use host.docker.internal instead of 127.0.0.1.'

/** Their OpenAI-compatible addresses, as their documentation gave them in November 2026. */
export const PRESETS: readonly Preset[] = [
  { id: 'openai', name: 'OpenAI', baseUrl: 'https://api.openai.com/v1' },
  { id: 'anthropic', name: 'Anthropic', baseUrl: 'https://api.anthropic.com/v1' },
  { id: 'google', name: 'Google Gemini', baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai' },
  { id: 'openrouter', name: 'OpenRouter', baseUrl: 'https://openrouter.ai/api/v1' },
  { id: 'ollama', name: 'Ollama', baseUrl: 'http://127.0.0.1:11434/v1', hint: LOCAL },
  { id: 'vllm', name: 'vLLM', baseUrl: 'http://127.0.0.1:8000/v1', hint: LOCAL },
  { id: 'lmstudio', name: 'LM Studio', baseUrl: 'http://127.0.0.1:1234/v1', hint: LOCAL },
  { id: 'other', name: '', baseUrl: '' },
]

export interface ModelDraft {
  key: string
  name: string
  label: string
  /** Digits, or empty. */
  contextWindow: string
  images: boolean
  /** Null: Sandlot finds it. Undefined: unchanged. */
  wire: WireName | null | undefined
  /** Undefined: unchanged. */
  streaming: boolean | undefined
  /** Dollars, or empty. */
  input: string
  output: string
  cached: string
  /** Undefined: unchanged. */
  cacheWrite: string | undefined
}

export function emptyModel(): ModelDraft {
  return {
    key: crypto.randomUUID(),
    name: '',
    label: '',
    contextWindow: '',
    images: false,
    wire: undefined,
    streaming: undefined,
    input: '',
    output: '',
    cached: '',
    cacheWrite: undefined,
  }
}

export function draftOf({
  name,
  label = '',
  contextWindow,
  images = false,
  wire,
  streaming,
  price,
}: Endpoint['models'][number]): ModelDraft {
  const text = (value: number | undefined) => (value === undefined ? '' : String(value))
  return {
    key: crypto.randomUUID(),
    name,
    label,
    contextWindow: text(contextWindow),
    images,
    wire,
    streaming,
    input: text(price?.input),
    output: text(price?.output),
    cached: text(price?.cached),
    cacheWrite: price?.cacheWrite?.toString(),
  }
}

/** The draft for another model or address, where an API that was found may not work. */
export function withoutApi(model: ModelDraft): ModelDraft {
  return { ...model, wire: model.wire && null }
}

export function modelOf({
  name,
  label,
  contextWindow,
  images,
  wire,
  streaming,
  input,
  output,
  cached,
  cacheWrite,
}: ModelDraft): EndpointRequest['models'][number] {
  const typed = (text: string) => (text.trim() === '' ? undefined : Number(text))
  const [cost, gain] = [typed(input), typed(output)]
  const written = cacheWrite === undefined ? undefined : (typed(cacheWrite) ?? null)
  return {
    name: name.trim(),
    label: label.trim() === '' ? undefined : label.trim(),
    contextWindow: typed(contextWindow),
    // Not ticked: as is known of a model of this name.
    images: images ? true : undefined,
    wire,
    streaming,
    price:
      cost === undefined || gain === undefined
        ? undefined
        : { input: cost, output: gain, cached: typed(cached), cacheWrite: written },
  }
}
