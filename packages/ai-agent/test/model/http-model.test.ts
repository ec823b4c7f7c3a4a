/** The model against a real HTTP server. */
import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type ModelMessage, ModelError } from '../../src/model/model.ts'
import type { Model, ModelAnswer, ModelChunk, ModelRequest } from '../../src/model/model.ts'
import { createHttpModel } from '../../src/model/http-model.ts'
import type { HttpModelOptions } from '../../src/model/http-model.ts'
import { errorAnswer, sse, startFakeProvider, textAnswer, toolCalls } from '../support/fake-provider.ts'
import type { FakeProvider } from '../support/fake-provider.ts'
import { deltas, streamOf } from './read-stream.ts'

const KEY = 'sk-very-secret-1234'
const HI: ModelRequest = { messages: [{ role: 'user', content: 'hi' }] }
const never = new AbortController().signal

let provider: FakeProvider
beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

const model = (options: Partial<HttpModelOptions> = {}): Model =>
  createHttpModel({
    baseUrl: provider.baseUrl,
    apiKey: KEY,
    model: 'test-model',
    inContainer: false,
    ...options,
  })

async function ask(
  request: ModelRequest = HI,
  asked = model(),
  signal = never,
): Promise<{ answer: ModelAnswer; chunks: ModelChunk[] }> {
  const chunks: ModelChunk[] = []
  const answer = await asked.stream(request, signal, (piece) => chunks.push(piece))
  return { answer, chunks }
}

async function failure(asked = model()): Promise<ModelError> {
  const thrown: unknown = await ask(HI, asked).catch((error: unknown) => error)
  if (thrown instanceof ModelError) return thrown
  throw new Error('It did not fail with a ModelError.', { cause: thrown })
}

describe('the request', () => {
  const history: ModelMessage[] = [
    { role: 'system', content: 'be kind' },
    { role: 'user', content: 'look' },
    {
      role: 'assistant',
      content: '',
      calls: [
        {
          id: 'a',
          name: 'read_file',
          args: { path: 'x', limit: 5 },
          replay: { extra_content: { google: { thought_signature: 's' } } },
        },
        { id: 'b', name: 'write_file', args: '{"path":"half', invalid: 'truncated' },
      ],
      replay: [{ raw: { reasoning_content: 'I think' } }],
    },
    { role: 'tool', callId: 'a', content: 'text' },
    { role: 'tool', callId: 'b', content: 'cut, split it' },
    { role: 'assistant', content: 'done', calls: [] },
    { role: 'user', content: 'more' },
  ]
  const tools = [
    { name: 'b_tool', description: 'B', parameters: { type: 'object', properties: { z: {}, a: {} } } },
    { name: 'a_tool', description: 'A', parameters: { type: 'object' } },
  ]

  test('bug 26: is on the wire exactly so, byte for byte the same each time', async () => {
    provider.add(textAnswer('ok'), textAnswer('ok'))
    await ask({ messages: history, tools, maxTokens: 99 })
    await ask({ messages: history, tools: tools.toReversed(), maxTokens: 99 })
    const fn = (name: string, args: string) => ({ name, arguments: args })
    expect(provider.requests[0]?.raw).toBe(
      JSON.stringify({
        model: 'test-model',
        messages: [
          { role: 'system', content: 'be kind' },
          { role: 'user', content: 'look' },
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              {
                id: 'a',
                type: 'function',
                function: fn('read_file', '{"path":"x","limit":5}'),
                extra_content: { google: { thought_signature: 's' } },
              },
              { id: 'b', type: 'function', function: fn('write_file', '{}') },
            ],
            reasoning_content: 'I think',
          },
          { role: 'tool', tool_call_id: 'a', content: 'text' },
          { role: 'tool', tool_call_id: 'b', content: 'cut, split it' },
          { role: 'assistant', content: 'done' },
          { role: 'user', content: 'more' },
        ],
        tools: [
          {
            type: 'function',
            function: { name: 'a_tool', description: 'A', parameters: { type: 'object' } },
          },
          {
            type: 'function',
            function: {
              name: 'b_tool',
              description: 'B',
              parameters: { type: 'object', properties: { z: {}, a: {} } },
            },
          },
        ],
        stream: true,
        stream_options: { include_usage: true },
        max_tokens: 99,
      }),
    )
    expect(provider.requests[1]?.raw).toBe(provider.requests[0]?.raw)
    expect(provider.requests[0]).toMatchObject({
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${KEY}` },
    })
  })

  test('bug 29: no tools, no tools member', async () => {
    provider.add(textAnswer('ok'), textAnswer('ok'))
    await ask({ ...HI, tools: [] })
    await ask(HI)
    expect(provider.requests.map((request) => 'tools' in request.body)).toEqual([false, false])
  })

  test('a query in the base URL stays', async () => {
    provider.add(textAnswer('ok'))
    await ask(HI, model({ baseUrl: `${provider.baseUrl}/?api-version=7` }))
    expect(provider.requests[0]?.path).toBe('/v1/chat/completions?api-version=7')
  })

  test('without a key there is no authorization header', async () => {
    provider.add(textAnswer('ok'))
    await ask(HI, model({ apiKey: '' }))
    expect(provider.requests[0]?.headers).not.toHaveProperty('authorization')
  })

  test('an endpoint that refuses stream_options is asked without them from then on', async () => {
    provider.add(
      errorAnswer(400, { error: { message: "Unknown field 'stream_options'" } }),
      textAnswer('a'),
      textAnswer('b'),
    )
    const asked = model()
    expect((await ask(HI, asked)).answer.text).toBe('a')
    expect((await ask(HI, asked)).answer.text).toBe('b')
    expect(provider.requests.map((request) => 'stream_options' in request.body)).toEqual([true, false, false])
  })
})

test('an endpoint that wants max_completion_tokens gets it from then on', async () => {
  const words = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
  provider.add(errorAnswer(400, { error: { message: words } }), textAnswer('a'), textAnswer('b'))
  const asked = model()
  await ask({ ...HI, maxTokens: 9 }, asked)
  await ask({ ...HI, maxTokens: 9 }, asked)
  expect(provider.requests.map((request) => request.body['max_completion_tokens'])).toEqual([undefined, 9, 9])
})

test('not streamed: the same message from one JSON body', async () => {
  const message = { content: 'whole', tool_calls: [{ id: 'a', function: { name: 'echo', arguments: '{}' } }] }
  provider.add(
    errorAnswer(200, { choices: [{ message, finish_reason: 'tool_calls' }] }),
    errorAnswer(200, { choices: null }),
  )
  const asked = model({ streaming: false })
  expect((await ask(HI, asked)).answer).toMatchObject({ text: 'whole', calls: [{ id: 'a', args: {} }] })
  expect(provider.requests[0]?.body.stream).toBe(false)
  expect(await failure(asked)).toMatchObject({ class: 'provider_error', retryable: true })
})

describe('the answer', () => {
  test('text in pieces as they come, and usage', async () => {
    provider.add(textAnswer('Hello wörld 😀', { pieceLength: 4, writeBytes: 7 }))
    const { answer, chunks } = await ask()
    expect(answer).toEqual({
      wire: 'chat',
      requestDigest: createHash('sha256')
        .update(provider.requests[0]?.raw ?? '')
        .digest('hex'),
      text: 'Hello wörld 😀',
      thought: '',
      calls: [],
      finish: 'stop',
      usage: { input: 10, output: 5 },
    })
    expect(chunks.length).toBeGreaterThan(2)
  })

  test('calls', async () => {
    provider.add(
      toolCalls(
        [
          { id: 'a', name: 'echo', args: { text: 'x' } },
          { id: 'b', name: 'echo', args: {} },
        ],
        { text: 'Look:', writeBytes: 5 },
      ),
    )
    expect((await ask()).answer).toMatchObject({
      text: 'Look:',
      calls: [
        { id: 'a', name: 'echo', args: { text: 'x' } },
        { id: 'b', name: 'echo', args: {} },
      ],
      finish: 'tool_calls',
    })
  })

  test('a JSON body under stream: true', async () => {
    const body = {
      choices: [{ message: { content: 'whole' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 2 },
    }
    provider.add(errorAnswer(200, body))
    expect((await ask()).answer).toMatchObject({ text: 'whole', usage: { input: 1, output: 2 } })
  })

  test('a stream that is called JSON', async () => {
    provider.add({ ...textAnswer('ok'), headers: { 'content-type': 'application/json' } })
    expect((await ask()).answer.text).toBe('ok')
  })

  test('[DONE] ends it, though the connection stays open', async () => {
    provider.add({ ...textAnswer('ok'), after: 'hang' })
    expect((await ask()).answer.text).toBe('ok')
    await expect.poll(() => provider.requests[0]?.aborted).toBe(true)
  })

  test('a connection that breaks after the finish changes nothing', async () => {
    provider.add({
      steps: [streamOf(deltas([{ content: 'ok' }], 'stop'), false), { delayMs: 20 }],
      after: 'destroy',
    })
    expect((await ask()).answer.text).toBe('ok')
  })
})

describe('failures', () => {
  test('401 names the setting and never the key', async () => {
    provider.add(
      errorAnswer(401, {
        error: { message: `Incorrect API key provided: ${KEY}.`, code: 'invalid_api_key' },
      }),
    )
    const error = await failure()
    expect(error).toMatchObject({ class: 'auth', retryable: false, status: 401 })
    expect(error.message).toContain('OPENAI_API_KEY')
    expect(error.message).not.toContain(KEY)
  })

  test('401 without a key says that none is set', async () => {
    provider.add(errorAnswer(401, 'no'))
    expect((await failure(model({ apiKey: '' }))).message).toMatch(/none is set.*OPENAI_API_KEY/)
  })

  test('a key that no header can carry is refused before it is sent, without being shown', async () => {
    const error = await failure(model({ apiKey: 'sk-first\nsk-second' }))
    expect(error).toMatchObject({ class: 'auth', retryable: false })
    expect(error.message).not.toMatch(/first|second/)
  })

  test('the key is taken out of whatever the provider says', async () => {
    provider.add(errorAnswer(400, { error: { message: `bad request for ${KEY} and sk-other-key-0000` } }))
    expect((await failure()).message).not.toMatch(/secret|other-key/)
  })

  test('bug 19: Retry-After, in seconds, as a date, in the body, in words', async () => {
    const busy = { error: { message: 'Rate limit reached' } }
    provider.add(
      errorAnswer(429, busy, { 'retry-after': '7' }),
      errorAnswer(429, busy, { 'retry-after-ms': '1500' }),
      errorAnswer(429, busy, { 'retry-after': new Date(Date.now() + 30_000).toUTCString() }),
      errorAnswer(429, { error: { message: 'Rate limit reached. Please try again in 1m3.5s.' } }),
      errorAnswer(429, {
        error: { message: 'Resource has been exhausted', details: [{ retryDelay: '34s' }] },
      }),
      errorAnswer(429, busy),
    )
    const waits: (number | undefined)[] = []
    for (let n = 0; n < 6; n++) {
      const error = await failure()
      expect(error).toMatchObject({ class: 'rate_limit', retryable: true, status: 429 })
      waits.push(error.waitMs)
    }
    expect(waits[2]).toBeGreaterThan(20_000)
    expect(waits.toSpliced(2, 1)).toEqual([7_000, 1_500, 63_500, 34_000, undefined])
  })

  test('the client itself never retries', async () => {
    provider.add(errorAnswer(500, 'no'), errorAnswer(503, 'no'), { steps: [], after: 'destroy' })
    expect((await failure()).class).toBe('server_error')
    expect((await failure()).class).toBe('overloaded')
    expect((await failure()).class).toBe('stream_interrupted')
    expect(provider.requests).toHaveLength(3)
  })

  test('bug 17: a connection that breaks in the middle', async () => {
    provider.add({
      steps: [sse({ choices: [{ delta: { content: 'half' } }] }), { delayMs: 20 }],
      after: 'destroy',
    })
    expect(await failure()).toMatchObject({ class: 'stream_interrupted', retryable: true })
  })

  test('mid-stream tool call interruption: broken, silent, or only kept alive, no call comes out', async () => {
    const begun = sse({
      choices: [
        { delta: { tool_calls: [{ index: 0, id: 'a', function: { name: 'write', arguments: '{"p":"' } }] } },
      ],
    })
    const alive = Array.from({ length: 40 }, () => [': ping\n\n', { delayMs: 20 }]).flat()
    provider.add(
      { steps: [begun, { delayMs: 20 }], after: 'destroy' },
      { steps: [begun], after: 'end' },
      { steps: [begun], after: 'hang' },
      { steps: [begun, ...alive], after: 'hang' },
    )
    const asked = model({ silence: { idleMs: 150, progressMs: 300 } })
    for (const errorClass of ['stream_interrupted', 'stream_interrupted', 'timeout', 'timeout']) {
      expect(await failure(asked)).toMatchObject({ class: errorClass, retryable: true })
    }
  })

  test('bug 18: silence before the head, in the middle, and only signs of life', async () => {
    const asked = model({ silence: { idleMs: 150, progressMs: 400 } })
    const alive = Array.from({ length: 60 }, () => [': ping\n\n', { delayMs: 30 }]).flat()
    provider.add(
      { steps: [sse({ choices: [{ delta: { content: 'half' } }] })], after: 'hang' },
      { steps: alive, after: 'hang' },
      async () => {
        await new Promise((resolve) => {
          setTimeout(resolve, 1_000)
        })
        return textAnswer('late')
      },
    )
    expect(await failure(asked)).toMatchObject({
      class: 'timeout',
      retryable: true,
      message: expect.stringContaining('nothing'),
    })
    expect(await failure(asked)).toMatchObject({
      class: 'timeout',
      message: expect.stringContaining('signs of life'),
    })
    expect(await failure(asked)).toMatchObject({ class: 'timeout' })
    await expect.poll(() => provider.requests.map((request) => request.aborted)).toEqual([true, true, true])
  })

  test('bug 18: the clock stands still while this process is busy with a piece', async () => {
    provider.add(textAnswer('one two three', { pieceLength: 4 }))
    const slow = model({ silence: { idleMs: 150, progressMs: 150 } })
    let held = false
    const { text } = await slow.stream(HI, never, () => {
      if (held) return
      held = true
      const until = performance.now() + 400
      while (performance.now() < until);
    })
    expect(text).toBe('one two three')
  })

  test('nobody there: the sentence names the address, and in a container what to write instead', async () => {
    const gone = await startFakeProvider()
    await gone.close()
    const local = gone.baseUrl.replace('127.0.0.1', 'localhost')
    const outside = await failure(model({ baseUrl: local }))
    expect(outside).toMatchObject({ class: 'unreachable', message: expect.stringContaining(local) })
    expect(outside.message).not.toContain('host.docker.internal')
    const inside = await failure(model({ baseUrl: local, inContainer: true }))
    expect(inside.message).toContain(local.replace('localhost', 'host.docker.internal'))
    expect(inside.message).toContain('OPENAI_BASE_URL')
    expect(inside.forMembers).toBe('Couldn’t reach the model provider: nothing listens there.')
  })

  test('a password in the URL is sent as one, and not shown', async () => {
    provider.add(errorAnswer(404, 'no'))
    const error = await failure(
      model({ apiKey: '', baseUrl: provider.baseUrl.replace('http://', 'http://us%40er:hunter2@') }),
    )
    expect(error).toMatchObject({ status: 404 })
    expect(error.message).not.toContain('hunter2')
    expect(provider.requests[0]?.headers['authorization']).toBe(
      `Basic ${Buffer.from('us@er:hunter2').toString('base64')}`,
    )
  })
})

describe('Stop', () => {
  test('before it begins nothing is sent', async () => {
    const stop = AbortSignal.abort('cancelled')
    await expect(ask(HI, model(), stop)).rejects.toBe('cancelled')
    expect(provider.requests).toHaveLength(0)
  })

  test('while it waits and while it streams: the reason is thrown, the connection closed', async () => {
    provider.add(
      { steps: [], after: 'hang' },
      { steps: [sse({ choices: [{ delta: { content: 'half' } }] })], after: 'hang' },
    )
    const first = new AbortController()
    const waiting = ask(HI, model(), first.signal)
    await expect.poll(() => provider.requests.length).toBe(1)
    first.abort('cancelled')
    await expect(waiting).rejects.toBe('cancelled')

    const second = new AbortController()
    const begun = Promise.withResolvers<void>()
    const streaming = model().stream(HI, second.signal, () => begun.resolve())
    await begun.promise
    second.abort('cancelled')
    await expect(streaming).rejects.toBe('cancelled')
    await expect.poll(() => provider.requests.map((request) => request.aborted)).toEqual([true, true])
  })
  test('a consumer that throws closes the connection', async () => {
    provider.add({ steps: [sse({ choices: [{ delta: { content: 'half' } }] })], after: 'hang' })
    const asked = model().stream(HI, never, () => {
      throw new Error('no room')
    })
    await expect(asked).rejects.toThrow('no room')
    await expect.poll(() => provider.requests[0]?.aborted).toBe(true)
  })
})
