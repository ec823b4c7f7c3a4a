/** A model of an endpoint as it is typed, and addresses that people need not look up. */
import type { Endpoint, WireName } from '@sandlot/shared/account/models-api'

interface Preset {
  id: string
  /** Empty: none of these. */
  name: string
  baseUrl: string
  hint?: string
}

const LOCAL = 'As the machine of Sandlot sees it; in compose, host.docker.internal in place of 127.0.0.1.'

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

type EndpointModel = Endpoint['models'][number]

export interface ModelDraft {
  key: string
  name: string
  label: string
  /** Digits, or empty. */
  contextWindow: string
  images: boolean
  /** Empty: Sandlot finds it. */
  wire: WireName | ''
  /** It cannot stream. */
  whole: boolean
  /** Dollars, or empty. */
  input: string
  output: string
  cached: string
  cacheWrite: string
}

export function emptyModel(): ModelDraft {
  return {
    key: crypto.randomUUID(),
    name: '',
    label: '',
    contextWindow: '',
    images: false,
    wire: '',
    whole: false,
    input: '',
    output: '',
    cached: '',
    cacheWrite: '',
  }
}

export function draftOf({
  name,
  label = '',
  contextWindow,
  images = false,
  wire,
  streaming = true,
  price,
}: EndpointModel): ModelDraft {
  const text = (value: number | undefined) => (value === undefined ? '' : String(value))
  return {
    key: crypto.randomUUID(),
    name,
    label,
    contextWindow: text(contextWindow),
    images,
    wire: wire ?? '',
    whole: !streaming,
    input: text(price?.input),
    output: text(price?.output),
    cached: text(price?.cached),
    cacheWrite: text(price?.cacheWrite),
  }
}

export function modelOf({
  name,
  label,
  contextWindow,
  images,
  wire,
  whole,
  input,
  output,
  cached,
  cacheWrite,
}: ModelDraft): EndpointModel {
  const typed = (text: string) => (text.trim() === '' ? undefined : Number(text))
  const [cost, gain] = [typed(input), typed(output)]
  return {
    name: name.trim(),
    label: label.trim() === '' ? undefined : label.trim(),
    contextWindow: typed(contextWindow),
    // Not ticked: as is known of a model of this name.
    images: images ? true : undefined,
    wire: wire === '' ? undefined : wire,
    streaming: whole ? false : undefined,
    price:
      cost === undefined || gain === undefined
        ? undefined
        : { input: cost, output: gain, cached: typed(cached), cacheWrite: typed(cacheWrite) },
  }
}
