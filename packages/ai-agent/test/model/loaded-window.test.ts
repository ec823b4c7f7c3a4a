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
