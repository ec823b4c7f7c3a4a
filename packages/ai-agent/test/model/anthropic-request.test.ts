/** Requests over Messages: what is sent, what is learnt from a refusal, and where it goes. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createHttpModel } from '../../src/model/http-model.ts'
import { type JsonObject, isObject } from '../../src/model/json.ts'
import type { Model, ModelCall, ModelMessage, ModelRequest, ReplayItem } from '../../src/model/model.ts'
import { profileFor } from '../../src/model/profiles.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { plainTool } from '../../src/plain/plain-tool.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import { anthropicWire } from '../../src/model/wires/anthropic/anthropic-wire.ts'
import { type FakeProvider, errorAnswer, startFakeProvider } from '../support/fake-provider.ts'
import { WIRE_ANSWERS } from '../support/wire-answers.ts'

const ANTHROPIC = new URL('https://api.anthropic.com')
const HI: ModelMessage = { role: 'user', content: 'Hi' }
const answer = { steps: WIRE_ANSWERS.anthropic.events({ text: 'Hi' }) }
const MARK = { cache_control: { type: 'ephemeral' } }

interface Options {
  model?: string
  effort?: string
  window?: number
  refused?: string[]
}

function body(
  request: ModelRequest,
  { model = 'claude-opus-5', effort, window, refused = [] }: Options = {},
): JsonObject {
  const profile = profileFor(ANTHROPIC, model, {}, 'anthropic')
  const options = { model, streaming: true, profile, effort, window, refused: new Set(refused) }
  return anthropicWire.body(request, options)
}
/** The messages, without marks. */
const sent = (messages: readonly ModelMessage[]): JsonObject[] =>
  body({ messages }, { refused: ['cache_control'] })['messages'] as JsonObject[]

const one: ModelCall = { id: 'toolu_1', name: 'read', args: { path: 'a' } }
const use = { type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: 'a' } }
const said = (content: string, calls: ModelCall[] = [], replay?: ReplayItem[]): ModelMessage => ({
  role: 'assistant',
  content,
  calls,
  ...(replay === undefined ? {} : { replay }),
})
const result = (callId: string, content = 'done'): ModelMessage => ({ role: 'tool', callId, content })
const text = (words: string) => ({ type: 'text', text: words })
const thought = { type: 'thinking', thinking: 'hm', signature: 'EqQB' }

test('a request, with its marks for the cache', () => {
  const tools = ['b', 'a'].map((name) => ({ name, description: name, parameters: { type: 'object' } }))
  const messages: ModelMessage[] = [
    { role: 'system', content: 'be kind' },
    HI,
    said('I look.', [one]),
    result('toolu_1'),
  ]
  const request = body({ messages, tools })
  expect(request).toEqual({
    model: 'claude-opus-5',
    max_tokens: 128_000,
    thinking: { type: 'adaptive', display: 'summarized' },
    stream: true,
    tools: [
      { name: 'a', description: 'a', input_schema: { type: 'object' } },
      { name: 'b', description: 'b', input_schema: { type: 'object' }, ...MARK },
    ],
    system: [{ ...text('be kind'), ...MARK }],
    messages: [
      { role: 'user', content: [{ ...text('Hi'), ...MARK }] },
      { role: 'assistant', content: [text('I look.'), use] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [text('done')], ...MARK }],
      },
    ],
  })
  expect(JSON.stringify(body({ messages, tools: tools.toReversed() }))).toBe(JSON.stringify(request))
})

test('the next request begins with this one, and has a mark where this one ended', () => {
  const before: ModelMessage[] = [HI, said('', [one]), result('toolu_1')]
  const next = [...before, said('Done.'), { role: 'user', content: 'More' } as const]
  expect(sent(next).slice(0, 3)).toEqual(sent(before))
  const marked = (messages: readonly ModelMessage[]): number[] =>
    (body({ messages })['messages'] as JsonObject[]).flatMap((message, place) =>
      JSON.stringify(message).includes('cache_control') ? [place] : [],
    )
  expect([marked(before), marked(next)]).toEqual([
    [0, 2],
    [2, 4],
  ])
})

describe('messages', () => {
  test('of one role in a row are one, results first', () => {
    const image = { mimeType: 'image/png', data: 'AAAA' }
    const both = [one, { ...one, id: 'toolu_2' }]
    const list = sent([
      HI,
      { role: 'user', content: 'and' },
      said('', both),
      { ...result('toolu_1'), images: [image] } as ModelMessage,
      result('toolu_2', ''),
      { role: 'user', content: 'look', images: [image] },
    ])
    const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
    expect(list).toEqual([
      { role: 'user', content: [text('Hi'), text('and')] },
      { role: 'assistant', content: [use, { ...use, id: 'toolu_2' }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: [picture, text('done')] },
          { type: 'tool_result', tool_use_id: 'toolu_2' },
          picture,
          text('look'),
        ],
      },
    ])
  })

  test('a model without image input gets a note', () => {
    const profile = { ...profileFor(ANTHROPIC, 'm', {}, 'anthropic'), images: false }
    const messages = [
      { role: 'user', content: 'look', images: [{ mimeType: 'image/png', data: 'AAAA' }] } as const,
    ]
    const options = { model: 'm', streaming: true, profile, refused: new Set<string>() }
    expect(JSON.stringify(anthropicWire.body({ messages }, options))).toMatch(
      /look\\n\[An image \(image\/png, 3 bytes\)/,
    )
  })

  test('nothing that the provider refuses: blank texts, an answer first, ids and names of others', () => {
    const calls = [
      { id: 'functions.read:0', name: 'functions.read', args: 'cut', invalid: 'truncated' as const },
      { id: 'functions_read_0', name: '', args: {} },
    ]
    const list = sent([
      said(' \n', calls),
      result('functions.read:0', ' '),
      result('functions_read_0'),
      said(''),
    ])
    expect(list).toEqual([
      { role: 'user', content: [text('(continued)')] },
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'functions_read_0', name: 'functions_read', input: {} },
          { type: 'tool_use', id: 'functions_read_0_2', name: 'unnamed', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'functions_read_0' },
          { type: 'tool_result', tool_use_id: 'functions_read_0_2', content: [text('done')] },
        ],
      },
    ])
  })

  test('property: roles alternate, and every text and result of a history is there once', () => {
    const message = fc.oneof(
      fc.string().map((content): ModelMessage => ({ role: 'user', content })),
      fc.string().map((content) => said(content)),
      fc.string().map((content) => said(content, [one])),
    )
    fc.assert(
      fc.property(fc.array(message), (messages) => {
        const list = sent(messages)
        expect(list.map(({ role }) => role)).toEqual(
          list.map((_, place) => (place % 2 === 0 ? 'user' : 'assistant')),
        )
        const blocks = list
          .flatMap(({ content }) => content as JsonObject[])
          .filter((block) => block['text'] !== '(continued)')
        expect(blocks.filter(({ type }) => type === 'text')).toHaveLength(
          messages.filter(({ content }) => content.replaceAll('\0', '').trim() !== '').length,
        )
        expect(blocks.filter(({ type }) => type === 'tool_use')).toHaveLength(
          messages.filter((each) => each.role === 'assistant' && each.calls.length > 0).length,
        )
      }),
    )
  })
})

describe('an answer goes back in its own order', () => {
  const blocksOf = (message: ModelMessage): unknown => sent([HI, message])[1]?.['content']

  test('thoughts between texts and calls, unchanged', () => {
    const citations = [{ type: 'char_location' }]
    const replay = [
      { raw: thought },
      { chars: 7 },
      { raw: { ...thought, signature: 's2' } },
      { call: 0 },
      { chars: 4, raw: { citations } },
    ]
    expect(blocksOf(said('I look.Well', [one], replay))).toEqual([
      thought,
      text('I look.'),
      { ...thought, signature: 's2' },
      use,
      { ...text('Well'), citations },
    ])
  })

  test('text and calls that its items do not name are there too', () => {
    expect(
      blocksOf(
        said('I look. More', [one, { ...one, id: 'b' }], [{ raw: thought }, { chars: 7 }, { call: 0 }]),
      ),
    ).toEqual([thought, text('I look.'), text(' More'), use, { ...use, id: 'b' }])
  })

  test('a thought that led to nothing is left out', () => {
    expect(sent([HI, said('', [], [{ raw: thought }]), { role: 'user', content: 'So?' }])).toEqual([
      { role: 'user', content: [text('Hi'), text('So?')] },
    ])
  })
})

describe('thought', () => {
  const thinkingOf = (options: Options, messages: ModelMessage[] = [HI], maxTokens?: number): unknown => {
    const { thinking, output_config, max_tokens } = body(
      { messages, ...(maxTokens === undefined ? {} : { maxTokens }) },
      options,
    )
    return { thinking, output_config, max_tokens }
  }
  const adaptive = { type: 'adaptive', display: 'summarized' }
  const budget = (budget_tokens: number) => ({ type: 'enabled', budget_tokens })

  test.each([
    ['claude-opus-5-5', 128_000, adaptive, { effort: 'high' }],
    ['anthropic/claude-sonnet-4.6', 128_000, adaptive, { effort: 'high' }],
    ['anthropic.claude-opus-4-7', 128_000, adaptive, { effort: 'high' }],
    ['claude-fable-5', 128_000, adaptive, { effort: 'high' }],
    ['claude-haiku-4-5-20251001', 64_000, budget(32_000), undefined],
    ['claude-sonnet-4-20250514', 64_000, budget(32_000), undefined],
    ['claude-opus-4-1-20250805', 32_000, budget(16_000), undefined],
    ['claude-opus-4-20250514', 32_000, budget(16_000), undefined],
    ['claude-opus-4-5-20251101', 64_000, budget(32_000), undefined],
    ['claude-3-7-sonnet-20250219', 64_000, budget(32_000), undefined],
    ['claude-3-5-haiku-20241022', 8_192, undefined, undefined],
    ['claude-3-haiku-20240307', 4_096, undefined, undefined],
    ['glm-5.3', 32_000, undefined, undefined],
  ])('%s', (model, max_tokens, thinking, output_config) => {
    expect(thinkingOf({ model, effort: 'high' })).toEqual({ thinking, output_config, max_tokens })
    expect(profileFor(ANTHROPIC, model, {}, 'anthropic').thoughtLevels.includes('high')).toBe(
      thinking !== undefined,
    )
  })

  test('a known window leaves room for the answer, and a budget only takes steps', () => {
    const words = (length: number): ModelMessage[] => [{ role: 'user', content: 'x'.repeat(length) }]
    const limits = (length: number) => {
      const { max_tokens, thinking } = body(
        { messages: words(length) },
        { model: 'claude-sonnet-4', effort: 'high', window: 200_000 },
      )
      return [max_tokens, (thinking as JsonObject | undefined)?.['budget_tokens']]
    }
    expect([0, 350_000, 500_000, 540_000, 690_000, 1_000_000].map(limits)).toEqual([
      [64_000, 32_000],
      [64_000, 32_000],
      [50_886, 16_000],
      [39_458, 16_000],
      [20_000, 8_000],
      [20_000, 8_000],
    ])
    expect(body({ messages: [HI] }, { model: 'qwen', window: 4_096 })['max_tokens']).toBe(3_961)
  })

  test('a short answer has no room for it, and models that take a budget get none without a level', () => {
    expect(thinkingOf({ effort: 'low' }, [HI], 512)).toEqual({
      thinking: undefined,
      output_config: { effort: 'low' },
      max_tokens: 512,
    })
    expect(thinkingOf({ model: 'claude-opus-4-5', effort: 'low' }, [HI], 512)).toMatchObject({
      thinking: undefined,
    })
    expect(thinkingOf({ model: 'claude-opus-4-5' })).toMatchObject({ thinking: undefined })
  })

  test('with a budget it is off until the next message where calls are run that began without', () => {
    const asked = (...messages: ModelMessage[]): unknown =>
      body({ messages }, { model: 'claude-opus-4-5', effort: 'low' })['thinking']
    const began = [{ raw: thought }, { call: 0 }]
    const again = { ...one, id: 'toolu_2' }
    expect(asked(HI, said('', [one], began), result('toolu_1'))).toEqual(budget(4_096))
    expect(
      asked(HI, said('', [one], began), result('toolu_1'), said('', [again]), result('toolu_2')),
    ).toEqual(budget(4_096))
    expect(asked(HI, said('', [one]), result('toolu_1'))).toBeUndefined()
    expect(asked(HI, said('', [one]), result('toolu_1'), { role: 'user', content: 'a hint' })).toBeUndefined()
    expect(asked(HI, said('', [one]), result('toolu_1'), said('Done.'), HI)).toEqual(budget(4_096))
    // Models that think as they find necessary have no such rule.
    expect(body({ messages: [HI, said('', [one]), result('toolu_1')] })['thinking']).toEqual(adaptive)
  })
})

describe('at a provider', () => {
  let provider: FakeProvider
  beforeEach(async () => {
    provider = await startFakeProvider()
  })
  afterEach(() => provider.close())

  const at = (model: string, apiKey = 'k') =>
    createHttpModel({ baseUrl: provider.baseUrl, wire: 'anthropic', apiKey, model })
  const ask = async (
    model: string | Model = 'claude-opus-5',
    effort?: string,
    apiKey = 'sk-ant-key',
    messages: readonly ModelMessage[] = [HI],
  ) => {
    const asked = typeof model === 'string' ? at(model, apiKey) : model
    const levelled = effort === undefined ? asked : asked.atLevel?.(effort)
    return levelled?.stream({ messages: [...messages] }, new AbortController().signal, () => undefined)
  }
  const refusal = (message: string) =>
    errorAnswer(400, {
      type: 'error',
      error: { type: 'invalid_request_error', message },
      request_id: 'req_1',
    })
  const bodies = (): JsonObject[] => provider.requests.map((request) => request.body as JsonObject)

  test('headers, path, and the answer', async () => {
    provider.add(answer, answer, answer)
    expect(await ask()).toMatchObject({ text: 'Hi', finish: 'stop' })
    await ask('claude-opus-4-5', 'low')
    await ask('any', undefined, '')
    const [first, second, third] = provider.requests
    expect(first).toMatchObject({
      path: '/v1/messages',
      headers: {
        'x-api-key': 'sk-ant-key',
        authorization: 'Bearer sk-ant-key',
        'anthropic-version': '2023-06-01',
      },
    })
    expect(first?.headers).not.toHaveProperty('anthropic-beta')
    expect(second?.headers['anthropic-beta']).toBe('interleaved-thinking-2025-05-14')
    expect(third?.headers['anthropic-version']).toBe('2023-06-01')
    expect(third?.headers).not.toHaveProperty('x-api-key')
  })

  test('alternatives at the top of a schema', async () => {
    const words =
      'tools.14.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level'
    provider.add(refusal(words), answer)
    const model = createHttpModel({ baseUrl: provider.baseUrl, wire: 'anthropic', apiKey: 'k', model: 'm' })
    const parameters = { properties: { a: {} }, anyOf: [{ required: ['a'] }] }
    const tools = [{ name: 'x', description: '', parameters }]
    await model.stream({ messages: [HI], tools }, new AbortController().signal, () => undefined)
    expect(bodies().map((sentBody) => (sentBody['tools'] as JsonObject[])[0]?.['input_schema'])).toEqual([
      { type: 'object', ...parameters },
      { type: 'object', properties: { a: {} } },
    ])
  })

  test('through the loop: the thought goes back with its call, and its result', async () => {
    const call = { id: 'toolu_1', name: 'echo', args: '{"text":"hi"}' }
    const first = WIRE_ANSWERS.anthropic.events({ thought: 'hm', text: 'I ask.', calls: [call] })
    provider.add({ steps: first }, answer)
    const model = createHttpModel({
      baseUrl: provider.baseUrl,
      wire: 'anthropic',
      apiKey: 'k',
      model: 'claude-opus-5',
    })
    const echo = plainTool({
      name: 'echo',
      description: 'Say it again.',
      parameters: { type: 'object', properties: { text: { type: 'string' } } },
      execute: () => Promise.resolve('hi again'),
    })
    const running = runAgent({ model, tools: [echo], log: memoryLog(), prompt: 'go' })
    let step = await running.next()
    while (step.done !== true) step = await running.next()
    expect(step.value).toMatchObject({ reason: 'completed', text: 'Hi' })
    expect(WIRE_ANSWERS.anthropic.messages(bodies()[1] ?? {}).slice(-2)).toMatchObject([
      {
        role: 'assistant',
        text: 'I ask.',
        reasoning: [{ type: 'thinking', thinking: 'hm', signature: 'signed:hm' }],
        calls: [call],
      },
      { role: 'tool', callId: 'toolu_1', text: 'hi again' },
    ])
  })

  test.each<[string, string, string | undefined, object, object]>([
    // Wei-Shaw/sub2api#225, earendil-works/pi#7938
    [
      'marks for the cache',
      'tools.3.cache_control: Extra inputs are not permitted',
      undefined,
      { messages: [{ content: [MARK] }] },
      { messages: [{ role: 'user', content: [text('Hi')] }] },
    ],
    [
      'the longest answer',
      'max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5-20250929',
      undefined,
      { max_tokens: 128_000 },
      { max_tokens: 64_000 },
    ],
    [
      'words of thought',
      'thinking.adaptive.display: Extra inputs are not permitted',
      undefined,
      {},
      { thinking: { type: 'adaptive' } },
    ],
    [
      'thought without a budget',
      'adaptive thinking is not supported on this model',
      'high',
      { thinking: { type: 'adaptive' } },
      { thinking: { type: 'enabled', budget_tokens: 32_000 } },
    ],
    [
      'effort',
      'This model does not support the effort parameter.',
      'high',
      { output_config: { effort: 'high' } },
      { thinking: { type: 'adaptive' } },
    ],
  ])('what it refuses is not sent again: %s', async (_, words, effort, refused, sentAgain) => {
    provider.add(refusal(words), answer, answer)
    await ask('claude-opus-5', effort)
    const [first, second] = bodies()
    expect(first).toMatchObject(refused)
    expect(second).toMatchObject(sentAgain)
    expect(JSON.stringify(second).length).not.toBe(JSON.stringify(first).length)
  })

  test('a budget where the model takes none', async () => {
    provider.add(
      refusal(
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
      ),
      answer,
    )
    await ask('claude-opus-4-5', 'high')
    expect(bodies()[1]).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } })
  })

  test('the header for thought between calls: sent with a budget alone, and not where it is refused', async () => {
    const words =
      'Unexpected value(s) `interleaved-thinking-2025-05-14` for the `anthropic-beta` header. Please consult our documentation or try again without the header.'
    provider.add(refusal(words), answer, answer, answer)
    const model = at('claude-opus-4-5')
    await ask(model, 'low')
    await ask(model, 'low')
    await ask(at('claude-opus-4-5'))
    expect(provider.requests.map(({ headers }) => headers['anthropic-beta'] !== undefined)).toEqual([
      true,
      false,
      false,
      false,
    ])
    expect(bodies().map(({ thinking }) => thinking !== undefined)).toEqual([true, true, true, false])
  })

  test('a level that a model does not have leaves the others', async () => {
    const words = "output_config.effort: 'max' is not supported by this model. Supported: low, medium, high"
    provider.add(refusal(words), answer, answer)
    const model = at('claude-sonnet-4-6')
    await ask(model, 'max')
    await ask(model, 'high')
    const levels = bodies().map(({ output_config }) => output_config)
    expect(levels).toEqual([{ effort: 'max' }, undefined, { effort: 'high' }])
  })

  /** Tokens that this provider counts for each character of a request. */
  const RATES = [0.2, 0.45]
  test.each(RATES)('a window that it names holds request and answer: %s tokens a character', async (rate) => {
    const window = 16_384
    const input: number[] = []
    const count = (sentBody: JsonObject): number =>
      50 + Math.floor(JSON.stringify(sentBody['messages']).length * rate)
    const serve = ({ body: sentBody }: { body: unknown }) => {
      const request = sentBody as JsonObject
      const [tokens, most] = [count(request), Number(request['max_tokens'])]
      if (tokens + most <= window) {
        input.push(tokens)
        return answer
      }
      return refusal(
        `'max_tokens' or 'max_completion_tokens' is too large: ${most}. This model's maximum context length is ${window} tokens and your request has ${tokens} input tokens (${most} > ${window} - ${tokens}).`,
      )
    }
    provider.add(...Array.from({ length: 40 }, () => serve))
    const model = at('qwen')
    const chat: ModelMessage[] = []
    while ((input.at(-1) ?? 0) < window * 0.8) {
      chat.push({ role: 'user', content: 'many words '.repeat(200) })
      await ask(model, undefined, 'k', chat)
      expect(Number(bodies().at(-1)?.['max_tokens'])).toBeGreaterThanOrEqual(window * 0.09)
    }
    expect(provider.requests.length - chat.length).toBeLessThan(10)
    chat.push({ role: 'user', content: 'many words '.repeat(3_000) })
    await expect(ask(model, undefined, 'k', chat)).rejects.toMatchObject({ class: 'context_overflow' })
  })

  test.each<[words: string, max_tokens: number[]]>([
    // continuedev/continue#10875
    [
      'input length and `max_tokens` exceed context limit: 142251 + 64000 > 200000, decrease input length or `max_tokens` and try again',
      [64_000, 55_944],
    ],
    ['max_tokens (64000) must be at most 8192', [64_000, 8_192]],
    ['Range of max_tokens should be [1, 16384]', [64_000, 16_384]],
    ['tools.0: invalid schema near line 1200, max_tokens ok', [64_000]],
    ['input length and `max_tokens` exceed context limit: 192251 + 64000 > 200000', [64_000]],
    ['prompt is too long: 210000 tokens > 200000 maximum', [64_000]],
  ])('the limit of the answer after: %s', async (words, limits) => {
    provider.add(refusal(words), answer)
    await ask('claude-sonnet-4-20250514').catch(() => undefined)
    expect(bodies().map(({ max_tokens }) => max_tokens)).toEqual(limits)
  })

  test('a refusal that nothing mends is reported', async () => {
    provider.add(refusal('thinking: no'), refusal('thinking: no'))
    await expect(ask()).rejects.toMatchObject({ class: 'invalid_request' })
    expect(provider.requests).toHaveLength(2)
  })
})

test.each([
  ['https://api.anthropic.com', '/v1/messages'],
  ['https://api.anthropic.com/', '/v1/messages'],
  ['https://api.anthropic.com/v1', '/messages'],
  ['https://api.anthropic.com/v1/', '/messages'],
  ['https://api.z.ai/api/anthropic', '/v1/messages'],
  ['https://openrouter.ai/api/v1', '/messages'],
  ['https://host/anthropic/v1/messages', ''],
])('%s', (baseUrl, path) => {
  expect(anthropicWire.path(new URL(baseUrl))).toBe(path)
})

test('the key goes in one header to Anthropic, and in both to others', () => {
  const names = (url: string): string[] => Object.keys(anthropicWire.headers('k', new URL(url))).toSorted()
  expect(names('https://api.anthropic.com')).toEqual(['x-api-key'])
  expect(names('https://x.services.ai.azure.com/anthropic')).toEqual(['x-api-key'])
  expect(names('https://openrouter.ai/api')).toEqual(['authorization', 'x-api-key'])
})

test('numbers in arguments keep their digits', async () => {
  const provider = await startFakeProvider([answer])
  const model = createHttpModel({ baseUrl: provider.baseUrl, wire: 'anthropic', apiKey: '', model: 'm' })
  const args = { id: { 'sandlot/number': '1234567890123456789' } }
  const messages = [HI, said('', [{ ...one, args }]), result('toolu_1')]
  await model.stream({ messages }, new AbortController().signal, () => undefined)
  expect(provider.requests[0]?.raw).toContain('"input":{"id":1234567890123456789}')
  expect(isObject(provider.requests[0]?.body)).toBe(true)
  await provider.close()
})
