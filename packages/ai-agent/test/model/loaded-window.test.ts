/** Sources of the context windows of model servers, their order, and when a server is asked. */
import { createServer } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ContextWindow, limitIn } from '../../src/model/context-window.ts'
import { createHttpModel } from '../../src/model/http-model.ts'
import { loadedWindow } from '../../src/model/loaded-window.ts'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'

let provider: FakeProvider
beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

const ask = (model: string): Promise<number | undefined> =>
  loadedWindow(provider.baseUrl, { authorization: 'Bearer sk-test' }, model)

/** Bodies as their documentation shows them, at the path of each. */
const SERVERS: [name: string, path: string, model: string, body: unknown, tokens: number][] = [
  [
    // https://docs.vllm.ai, a server's list of models
    'vLLM',
    '/v1/models',
    'seongil-dn/bge-m3-3800_steps_v2_234',
    {
      object: 'list',
      data: [
        { id: 'other', object: 'model', owned_by: 'vllm', max_model_len: 32_768 },
        {
          created: 1_756_885_796,
          id: 'seongil-dn/bge-m3-3800_steps_v2_234',
          max_model_len: 1_024,
          object: 'model',
          owned_by: 'vllm',
          parent: null,
          permission: [{ allow_create_engine: false, id: 'modelperm-cb01ad02375f4989', group: null }],
          root: 'seongil-dn/bge-m3-3800_steps_v2_234',
        },
      ],
    },
    1_024,
  ],
  [
    // https://docs.ollama.com/api/ps
    'Ollama',
    '/api/ps',
    'gemma4',
    {
      models: [
        {
          name: 'gemma4:latest',
          model: 'gemma4:latest',
          size: 6_591_830_464,
          digest: 'c6eb396dbd5992bbe3f5cdb947e8bbc0ee413d7c17e2beaae69f5d569cf982eb',
          details: { parent_model: '', format: 'gguf', family: 'gemma4', families: ['gemma4'] },
          expires_at: '2025-10-17T16:47:07.93355-07:00',
          size_vram: 5_333_539_264,
          context_length: 4_096,
        },
      ],
    },
    4_096,
  ],
  [
    // https://github.com/ggml-org/llama.cpp, tools/server/README.md
    'llama.cpp',
    '/props?model=qwen%2F3&autoload=false',
    'qwen/3',
    {
      default_generation_settings: {
        id: 0,
        id_task: -1,
        n_ctx: 1_024,
        speculative: false,
        is_processing: false,
      },
      total_slots: 1,
      model_path: '../models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf',
      chat_template: '...',
      modalities: { vision: false },
      build_info: 'b(build number)-(build commit hash)',
    },
    1_024,
  ],
  [
    // https://lmstudio.ai/docs/developer/rest/endpoints
    'LM Studio',
    '/api/v0/models',
    'meta-llama-3.1-8b-instruct',
    {
      object: 'list',
      data: [
        {
          id: 'qwen2-vl-7b-instruct',
          object: 'model',
          type: 'vlm',
          state: 'not-loaded',
          max_context_length: 32_768,
        },
        {
          id: 'meta-llama-3.1-8b-instruct',
          object: 'model',
          type: 'llm',
          publisher: 'lmstudio-community',
          arch: 'llama',
          compatibility_type: 'gguf',
          quantization: 'Q4_K_M',
          state: 'loaded',
          max_context_length: 131_072,
          loaded_context_length: 4_096,
        },
      ],
    },
    4_096,
  ],
]

/** The same of providers, which list what they serve. */
const PROVIDERS: typeof SERVERS = [
  [
    // https://openrouter.ai/docs/api, `ModelsListResponse` and `TopProviderInfo`
    'OpenRouter',
    '/v1/models',
    'openai/gpt-4',
    {
      data: [
        { id: 'openai/gpt-4-turbo', context_length: 128_000, top_provider: null },
        {
          id: 'openai/gpt-4',
          canonical_slug: 'openai/gpt-4',
          name: 'GPT-4',
          created: 1_692_901_234,
          pricing: { prompt: '0.00003', completion: '0.00006', request: '0', image: '0' },
          context_length: 8_192,
          architecture: { modality: 'text->text', tokenizer: 'GPT', instruct_type: 'chatml' },
          top_provider: { context_length: 8_192, max_completion_tokens: 4_096, is_moderated: true },
          per_request_limits: null,
          supported_parameters: ['temperature', 'top_p', 'max_tokens'],
          default_parameters: null,
        },
      ],
    },
    8_192,
  ],
  [
    // https://docs.together.ai/reference/models
    'Together',
    '/v1/models',
    'Austism/chronos-hermes-13b',
    [
      {
        id: 'Austism/chronos-hermes-13b',
        object: 'model',
        created: 1_692_896_905,
        type: 'chat',
        display_name: 'Chronos Hermes (13B)',
        organization: 'Austism',
        license: 'other',
        context_length: 2_048,
        pricing: { hourly: 0, input: 0.3, output: 0.3, base: 0, finetune: 0 },
      },
    ],
    2_048,
  ],
  [
    // https://console.groq.com/docs/api-reference#models, as the project MeUtils prints it
    'Groq',
    '/v1/models',
    'llama-3.1-8b-instant',
    {
      object: 'list',
      data: [
        { id: 'gemma2-9b-it', object: 'model', owned_by: 'Google', active: true, context_window: 8_192 },
        {
          id: 'llama-3.1-8b-instant',
          created: 1_693_721_698,
          object: 'model',
          owned_by: 'Meta',
          active: true,
          context_window: 131_072,
          public_apps: null,
        },
      ],
    },
    131_072,
  ],
  [
    // https://docs.mistral.ai/api, `BaseModelCard`, with the values of mistral-medium-2508
    'Mistral',
    '/v1/models',
    'mistral-medium-latest',
    {
      object: 'list',
      data: [
        {
          id: 'mistral-medium-latest',
          object: 'model',
          created: 1_766_520_693,
          owned_by: 'mistralai',
          capabilities: { completion_chat: true, function_calling: true, vision: true },
          name: 'mistral-medium-2508',
          description: 'Update on Mistral Medium 3 with improved capabilities.',
          max_context_length: 131_072,
          aliases: ['mistral-medium-2508', 'mistral-medium'],
          deprecation: null,
          default_model_temperature: 0.3,
          type: 'base',
        },
      ],
    },
    131_072,
  ],
  [
    // https://platform.claude.com/docs/en/api/models/list
    'Anthropic',
    '/v1/models',
    'claude-opus-4-8',
    {
      data: [
        {
          type: 'model',
          id: 'claude-opus-4-8',
          display_name: 'Claude Opus 4.8',
          max_input_tokens: 1_000_000,
          max_tokens: 128_000,
          capabilities: { effort: { supported: true } },
        },
      ],
      has_more: false,
    },
    1_000_000,
  ],
]

test.each(PROVIDERS)('%s lists it', async (_, path, model, body, tokens) => {
  provider.pages.set(path, body)
  const listed = (name: string) => loadedWindow(provider.baseUrl, {}, name, true)
  expect(await listed(model)).toBe(tokens)
  expect(await listed(`${model}:nitro`)).toBe(tokens)
  expect(await listed('another')).toBeUndefined()
})

test('the smallest of what is listed counts, and what a server of one’s own has loaded before it', async () => {
  provider.pages.set('/v1/models', {
    data: [{ id: 'm', context_length: 1_048_576, top_provider: { context_length: 262_144 } }],
  })
  expect(await ask('m')).toBe(262_144)
  provider.pages.set('/api/ps', { models: [{ name: 'm', context_length: 4_096 }] })
  expect(await ask('m')).toBe(4_096)
})

/** Requests to a server for the window of a model: paths, each with the headers of its key. */
async function askedFor(path: string, isProvider: boolean): Promise<[string, string | undefined, unknown][]> {
  const seen: [string, string | undefined, unknown][] = []
  const server = createServer(({ url = '', headers }, answer) => {
    seen.push([url, headers.authorization, headers['x-goog-api-key']])
    // https://discuss.ai.google.dev/t/list-models-shows-incomplete-invalid-response-for-gemma/73769
    const name = url.startsWith('/v1beta/') ? 'models/gemini-2.0-flash-thinking-exp-1219' : undefined
    answer.end(JSON.stringify({ name, inputTokenLimit: 1_048_576, outputTokenLimit: 65_536 }))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const headers = { authorization: 'Bearer sk-test' }
  const baseUrl = `http://127.0.0.1:${portOf(server)}${path}`
  const tokens = await loadedWindow(baseUrl, headers, 'models/gemini-3-pro', isProvider)
  server.closeAllConnections()
  server.close()
  expect(tokens).toBe(path.startsWith('/v1beta/') ? 1_048_576 : undefined)
  return seen
}

test('a provider is asked for its list alone; Gemini for the model, in its own words', async () => {
  expect(await askedFor('/v1', true)).toEqual([['/v1/models', 'Bearer sk-test', undefined]])
  expect(await askedFor('/openai/v1', true)).toEqual([['/openai/v1/models', 'Bearer sk-test', undefined]])
  expect(await askedFor('/v1beta/openai', true)).toEqual([
    ['/v1beta/models/gemini-3-pro', undefined, 'sk-test'],
  ])
  expect((await askedFor('/v1', false)).map(([path]) => path).toSorted()).toEqual([
    '/api/ps',
    '/api/v0/models',
    '/props?model=models%2Fgemini-3-pro&autoload=false',
    '/v1/models',
  ])
})

test.each(SERVERS)('%s', async (_, path, model, body, tokens) => {
  provider.pages.set(path, body)
  expect(await ask(model)).toBe(tokens)
  if (!path.startsWith('/props')) expect(await ask('another')).toBeUndefined()
})

test('what is no answer, or of another shape, is none', async () => {
  expect(await ask('m')).toBeUndefined()
  provider.pages.set('/v1/models', { data: [null, { id: 'm', max_model_len: -1 }, { id: 7 }] })
  provider.pages.set('/api/ps', { models: [{ name: 'm', context_length: '4096' }] })
  provider.pages.set('/props?model=m&autoload=false', 'no object')
  expect(await ask('m')).toBeUndefined()
  provider.pages.set('/api/v0/models', { data: [null, { id: 'm', loaded_context_length: 8_192 }] })
  expect(await ask('m')).toBe(8_192)
  expect(await loadedWindow('http://127.0.0.1:9/v1', {}, 'm')).toBeUndefined()
})

test('the key goes along, and nowhere else', async () => {
  const seen: (string | undefined)[] = []
  const elsewhere = createServer((_, answer) => void (seen.push('elsewhere'), answer.end('{}')))
  const server = createServer((request, answer) => {
    seen.push(request.headers.authorization)
    answer.writeHead(307, { location: `http://127.0.0.1:${portOf(elsewhere)}/` }).end()
  })
  await Promise.all(
    [elsewhere, server].map(
      (one) => new Promise<void>((resolve) => void one.listen(0, '127.0.0.1', resolve)),
    ),
  )
  const baseUrl = `http://127.0.0.1:${portOf(server)}/v1`
  const model = createHttpModel({ baseUrl, apiKey: 'sk-test', model: 'm' })
  await model.window.refresh()
  for (const one of [elsewhere, server]) one.closeAllConnections()
  for (const one of [elsewhere, server]) one.close()
  expect(seen).toEqual(Array.from({ length: 4 }, () => 'Bearer sk-test'))
  expect(model.window).toMatchObject({ tokens: 32_000, from: 'assumed' })
})

function portOf(server: ReturnType<typeof createServer>): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

describe('the order', () => {
  const saying = (tokens: number | undefined) => () => Promise.resolve(tokens)

  test('set, then published, then what the server says, then an assumption', async () => {
    const of = async (sources: ConstructorParameters<typeof ContextWindow>[0]) => {
      const window = new ContextWindow(sources)
      await window.refresh()
      return [window.tokens, window.from]
    }
    expect(await of({ set: 64_000, table: 128_000, ask: saying(4_096) })).toEqual([64_000, 'set'])
    expect(await of({ table: 128_000, ask: saying(4_096) })).toEqual([128_000, 'table'])
    expect(await of({ ask: saying(4_096) })).toEqual([4_096, 'server'])
    expect(await of({ ask: saying(undefined) })).toEqual([32_000, 'assumed'])
  })

  test('a published one is not asked for', async () => {
    const { window } = createHttpModel({ baseUrl: 'https://api.openai.com/v1', apiKey: '', model: 'gpt-5' })
    expect(window.refresh()).toBeUndefined()
    expect(window).toMatchObject({ tokens: 400_000, from: 'table' })
  })

  test('what was learnt counts until the server says something else', async () => {
    let said: number | undefined = 32_768
    let time = 0
    const window = new ContextWindow({ ask: () => Promise.resolve(said), now: () => time })
    await window.refresh()
    expect([window.learn(4_096), window.learn(4_096), window.learn(12)]).toEqual([true, false, false])
    expect([window.tokens, window.from]).toEqual([4_096, 'learnt'])
    const again = async (tokens: number | undefined): Promise<number> => {
      said = tokens
      time += 60_000
      expect(window.refresh()).toBeUndefined()
      await new Promise((resolve) => void setImmediate(resolve))
      return window.tokens
    }
    expect(await again(32_768)).toBe(4_096)
    expect(await again(undefined)).toBe(4_096)
    expect(await again(16_384)).toBe(16_384)
  })

  test('what a provider lists is waited for, and asked for once', async () => {
    let time = 0
    let asked = 0
    const late = async (): Promise<number> => {
      asked++
      await new Promise((resolve) => void setTimeout(resolve, 500))
      return 131_072
    }
    const window = new ContextWindow({ ask: late, published: true, now: () => time })
    await window.refresh()
    expect([window.tokens, window.from]).toEqual([131_072, 'server'])
    time += 86_400_000
    expect([window.refresh(), asked]).toEqual([undefined, 1])
  })

  test('a server that says nothing is asked ever less, and a slow one holds up nothing for long', async () => {
    let time = 0
    let asked = 0
    const window = new ContextWindow({ ask: () => (asked++, Promise.resolve(undefined)), now: () => time })
    for (; time < 3_600_000; time += 1_000) await window.refresh()
    expect(asked).toBeLessThan(15)
    await new ContextWindow({ ask: () => new Promise(() => undefined) }).refresh()
  })
})

test.each([
  ["This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", 4_096],
  ["This model's maximum context length is 8,192 tokens", 8_192],
  ['request (9071 tokens) exceeds the available context size (4096 tokens), try increasing it', 4_096],
  ['prompt is too long: 210531 tokens > 200000 maximum', 200_000],
  ['Requested tokens (5120) exceed context window of 4096', 4_096],
  ['The input token count (40000) exceeds the maximum number of tokens allowed (32768).', 32_768],
  ['The engine prompt length 227861 exceeds the max_model_len 131072. Please reduce prompt.', 131_072],
  ['The decoder prompt (length 9000) is longer than the maximum model length of 8192.', 8_192],
  ['prompt length (9000) exceeds the context size of 4096', 4_096],
  ['Prompt length 9000 exceeds context window 4096', 4_096],
  ['context length exceeded: 9000 > 8192', 8_192],
  ['context length exceeded: 9000 tokens', undefined],
  ['context window exceeded (code 20015)', undefined],
  ['The input exceeds the context window by 1500 tokens', undefined],
  ['input is too long for the context window of gpt-4-2024', undefined],
  ['input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000', 200_000],
  ['maximum prompt length is 131072 but the request contains 537812 tokens', 131_072],
  ['The sum of prompt length (9000.0), query length (0) should not exceed max_num_tokens (8192)', 8_192],
  ['The prompt (total length 25938) is too long to fit into the model (context length 4096).', 4_096],
  ['inputs tokens + max_new_tokens must be <= 2048. Given: 3000', undefined],
  ['context_length_exceeded', undefined],
  ['Input length 5000 exceeds maximum context length of 4 tokens', undefined],
])('%s', (words, tokens) => {
  expect(limitIn(words)).toBe(tokens)
})
