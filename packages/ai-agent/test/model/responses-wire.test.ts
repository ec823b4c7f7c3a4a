/** Requests of the Responses wire: what is sent, what goes back, and what an endpoint refuses. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createHttpModel } from '../../src/model/http-model.ts'
import type { HttpModelOptions } from '../../src/model/http-model.ts'
import { isObject } from '../../src/model/json.ts'
import type { AssistantMessage, ModelAnswer, ModelMessage, ModelRequest } from '../../src/model/model.ts'
import { DEFAULT_PROFILE, profileFor } from '../../src/model/profiles.ts'
import { requestBody } from '../../src/model/wires/responses/body.ts'
import { responsesWire } from '../../src/model/wires/responses/responses-wire.ts'
import { type FakeProvider, errorAnswer, startFakeProvider } from '../support/fake-provider.ts'
import { type NeutralAnswer, WIRE_ANSWERS } from '../support/wire-answers.ts'
import { readPieces } from './read-stream.ts'

const { events, whole } = WIRE_ANSWERS.responses
const options = { model: 'm', streaming: true, profile: DEFAULT_PROFILE, refused: new Set<string>() }
const reasoning = { ...options, profile: { ...DEFAULT_PROFILE, thoughtLevels: ['low', 'high'] } }

function input(
  messages: readonly ModelMessage[],
  refused: readonly string[] = [],
): Record<string, unknown>[] {
  const items = requestBody({ messages }, { ...options, refused: new Set(refused) })['input']
  return Array.isArray(items) ? items.filter(isObject) : []
}

async function read(answer: NeutralAnswer, size?: number): Promise<ModelAnswer> {
  return (await readPieces(events(answer, size), DEFAULT_PROFILE, responsesWire)).answer
}

const replayed = ({ text, calls, replay }: ModelAnswer): AssistantMessage => ({
  role: 'assistant',
  content: text,
  calls,
  ...(replay === undefined ? {} : { replay }),
})

describe('the request', () => {
  test('is stateless, and asks only a model that reasons for its reasoning', () => {
    const messages: ModelMessage[] = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ]
    const tool = (name: string) => ({
      name,
      description: name,
      parameters: { type: 'object', properties: {} },
    })
    const request = { messages, tools: [tool('b'), tool('a')], maxTokens: 5 }
    expect(requestBody(request, options)).toEqual({
      model: 'm',
      instructions: 'Be brief.',
      input: [{ type: 'message', role: 'user', content: 'Hi' }],
      tools: ['a', 'b'].map((name) => ({ type: 'function', strict: false, ...tool(name) })),
      stream: true,
      store: false,
      max_output_tokens: 16,
    })
    expect(requestBody({ messages }, { ...reasoning, effort: 'high' })).toMatchObject({
      include: ['reasoning.encrypted_content'],
      reasoning: { effort: 'high', summary: 'auto' },
    })
    expect(JSON.stringify(requestBody(request, reasoning))).toBe(
      JSON.stringify(requestBody(request, reasoning)),
    )
  })

  test('images stand in the output of their call, or behind all outputs where that is refused', () => {
    const image = { mimeType: 'image/png', data: 'AAAA' }
    const call = (id: string) => ({ id, name: 'look', args: {} })
    const messages: ModelMessage[] = [
      { role: 'user', content: 'see', images: [image] },
      { role: 'assistant', content: '', calls: [call('a'), call('b')] },
      { role: 'tool', callId: 'a', content: 'one', images: [image] },
      { role: 'tool', callId: 'b', content: 'two' },
    ]
    const part = { type: 'input_image', image_url: 'data:image/png;base64,AAAA' }
    expect(input(messages)).toMatchObject([
      { content: [{ type: 'input_text', text: 'see' }, part] },
      { call_id: 'a', name: 'look', arguments: '{}' },
      { call_id: 'b' },
      { type: 'function_call_output', call_id: 'a', output: [{ type: 'input_text', text: 'one' }, part] },
      { call_id: 'b', output: 'two' },
    ])
    expect(input(messages, ['output_images']).slice(3)).toMatchObject([
      { call_id: 'a', output: 'one' },
      { call_id: 'b', output: 'two' },
      { role: 'user', content: [{ type: 'input_text' }, part] },
    ])
    const blind = requestBody({ messages }, { ...options, profile: { ...DEFAULT_PROFILE, images: false } })
    expect(JSON.stringify(blind)).not.toContain('AAAA')
    expect(JSON.stringify(blind).match(/An image \(image\/png, 3 bytes\)/g)).toHaveLength(2)
  })
})

describe('what goes back', () => {
  const answer: NeutralAnswer = {
    thought: 'Hm',
    text: 'Look:',
    calls: [{ id: 'a', name: 'read', args: '{"p":1}' }],
  }
  const sealed = {
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: 'Hm' }],
    encrypted_content: 'sealed:Hm',
  }

  test('is what the model said, in its order, without the ids that only a store understands', async () => {
    expect(input([replayed(await read(answer))])).toEqual([
      sealed,
      { type: 'message', role: 'assistant', content: 'Look:' },
      { type: 'function_call', call_id: 'a', name: 'read', arguments: '{"p":1}' },
    ])
  })

  test('is text and calls where there is no reasoning', async () => {
    const made = await read({ text: 'Look:', calls: answer.calls ?? [] })
    expect(made.replay).toBeUndefined()
    expect(input([replayed(made)]).map(({ type }) => type)).toEqual(['message', 'function_call'])
  })

  test('is no reasoning that nothing follows', async () => {
    expect(input([replayed(await read({ thought: 'Hm' }))])).toEqual([])
    expect(input([{ ...replayed(await read(answer)), content: '', calls: [] }])).toEqual([])
  })

  test('is the whole text, also where it is longer or shorter than the items say', async () => {
    const message = replayed(await read(answer))
    const texts = (content: string): unknown[] =>
      input([{ ...message, content }]).flatMap((item) =>
        item['type'] === 'message' ? [item['content']] : [],
      )
    expect(texts('Look').join('')).toBe('Look')
    expect(texts('Look: there').join('')).toBe('Look: there')
  })

  test('is each message of an answer with its phase', () => {
    const replay = [
      { chars: 4, raw: { phase: 'commentary' } },
      { call: 0 },
      { chars: 2, raw: { phase: 'final_answer' } },
    ]
    const calls = [{ id: 'a', name: 'read', args: {} }]
    expect(input([{ role: 'assistant', content: 'ab\n\ncd', calls, replay }])).toMatchObject([
      { content: 'ab', phase: 'commentary' },
      { type: 'function_call' },
      { content: 'cd', phase: 'final_answer' },
    ])
  })

  test('property: whatever was said, however it is cut, returns as it was', async () => {
    const words = fc.string({ unit: 'grapheme', maxLength: 30 })
    const calls = fc.uniqueArray(fc.record({ name: fc.constantFrom('read', 'write'), args: words }), {
      maxLength: 4,
      selector: ({ args }) => args,
    })
    await fc.assert(
      fc.asyncProperty(
        words,
        words,
        calls,
        fc.integer({ min: 1, max: 9 }),
        async (thought, text, made, size) => {
          const said: NeutralAnswer = {
            thought,
            text,
            calls: made.map(({ name, args }, place) => ({
              id: `c${place}`,
              name,
              args: JSON.stringify({ args }),
            })),
          }
          const streamed = await read(said, size)
          const { answer: complete } = await readPieces(
            [JSON.stringify(whole(said))],
            DEFAULT_PROFILE,
            responsesWire,
          )
          expect(complete).toEqual(streamed)
          const [back] = WIRE_ANSWERS.responses.messages({ input: input([replayed(streamed)]) })
          const calls = said.calls ?? []
          if (text === '' && calls.length === 0) {
            expect(back).toBeUndefined()
            return
          }
          expect(back).toMatchObject({ text, ...(calls.length === 0 ? {} : { calls }) })
          expect(back?.reasoning?.length ?? 0).toBe(thought === '' ? 0 : 1)
        },
      ),
    )
  })
})

describe('what an endpoint refuses', () => {
  let provider: FakeProvider
  beforeEach(async () => {
    provider = await startFakeProvider()
  })
  afterEach(() => provider.close())

  const model = (more: Partial<HttpModelOptions> = {}) =>
    createHttpModel({
      baseUrl: provider.baseUrl,
      wire: 'responses',
      apiKey: 'k',
      model: 'm',
      inContainer: false,
      profile: { thoughtLevels: ['low'] },
      ...more,
    })
  const fine = { steps: events({ text: 'fine' }) }
  const tools = [{ name: 'a', description: 'a', parameters: { type: 'object', properties: {} } }]
  const request: ModelRequest = {
    messages: [
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: 'so',
        calls: [{ id: 'a', name: 'a', args: {} }],
        replay: [
          { raw: { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'g' } },
          { chars: 2 },
        ],
      },
      { role: 'tool', callId: 'a', content: 'x', images: [{ mimeType: 'image/png', data: 'AAAA' }] },
    ],
    tools,
    maxTokens: 99,
  }
  const ask = (more?: Partial<HttpModelOptions>) => {
    const asked = model(more)
    return () => asked.stream(request, new AbortController().signal, () => undefined)
  }
  const refusal = (message: string, param?: string) =>
    errorAnswer(400, { error: { message, type: 'invalid_request_error', param: param ?? null, code: null } })

  test.each<[string, string, (body: Record<string, unknown>) => unknown, unknown]>([
    ['include', 'Encrypted content is not supported with this model.', ({ include }) => include, undefined],
    [
      'a summary',
      'Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general',
      ({ reasoning: sent }) => sent,
      undefined,
    ],
    [
      'reasoning',
      "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
      ({ reasoning: sent }) => sent,
      undefined,
    ],
    [
      'max_output_tokens',
      'Unsupported parameter: max_output_tokens',
      ({ max_output_tokens }) => max_output_tokens,
      undefined,
    ],
    ['store', "Unknown parameter: 'store'.", ({ store }) => store, undefined],
    [
      'strict',
      "Unknown parameter: 'tools[0].strict'.",
      ({ tools: sent }) => sent,
      [{ type: 'function', ...tools[0] }],
    ],
    [
      'a missing id',
      "Missing required parameter: 'input[1].id'.",
      ({ input: sent }) => (Array.isArray(sent) ? (sent[1] as unknown) : undefined),
      { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'g' },
    ],
    [
      'images in an output',
      "Invalid type for 'input[4].output': expected a string, but got an array instead.",
      ({ input: sent }) => (Array.isArray(sent) ? (sent[4] as unknown) : undefined),
      { type: 'function_call_output', call_id: 'a', output: 'x' },
    ],
  ])('%s is not sent again', async (_, words, sent, expected) => {
    provider.add(refusal(words), fine, fine)
    const asked = ask()
    expect((await asked()).text).toBe('fine')
    await asked()
    const [first, ...others] = provider.requests.map(({ body }) => sent(body))
    expect(first).not.toEqual(expected)
    expect(others).toEqual([expected, expected])
  })

  describe('strict mode', () => {
    const parameters = {
      type: 'object',
      properties: { path: { type: 'string' }, limit: { type: 'integer' } },
      required: ['path'],
      additionalProperties: false,
    }
    const strict = {
      ...parameters,
      properties: { path: { type: 'string' }, limit: { type: ['integer', 'null'] } },
      required: ['path', 'limit'],
    }
    const read = { name: 'read', description: 'Read.', parameters }
    const asked: ModelRequest = { messages: [{ role: 'user', content: 'hi' }], tools: [read] }
    const never = new AbortController().signal
    const call = { id: 'a', name: 'read', args: '{"path":"x","limit":null}' }
    const sent = (place: number): unknown => provider.requests[place]?.body.tools?.[0]

    test('is asked for where the schema has that form, and a null for an absent argument is dropped', async () => {
      provider.add({ steps: events({ calls: [call] }) })
      const { calls } = await model().stream(asked, never, () => undefined)
      expect(calls).toEqual([{ id: 'a', name: 'read', args: { path: 'x' } }])
      expect(sent(0)).toEqual({
        type: 'function',
        name: 'read',
        description: 'Read.',
        parameters: strict,
        strict: true,
      })
    })

    test('ends where the endpoint refuses the schema', async () => {
      const words =
        "Invalid schema for function 'read': In context=('properties', 'limit'), 'x' is not permitted."
      provider.add(refusal(words), fine)
      await model().stream(asked, never, () => undefined)
      expect(sent(1)).toEqual({ type: 'function', strict: false, ...read })
    })

    test('is asked for over Chat Completions where the endpoint is known to have it', async () => {
      const chat = (strictTools: boolean) => model({ wire: 'chat', profile: { strictTools } })
      const answer = { steps: WIRE_ANSWERS.chat.events({ calls: [call] }) }
      provider.add(answer, refusal("Unrecognized request argument supplied: 'strict'"), answer, answer)
      expect((await chat(true).stream(asked, never, () => undefined)).calls[0]?.args).toEqual({ path: 'x' })
      await chat(true).stream(asked, never, () => undefined)
      await chat(false).stream(asked, never, () => undefined)
      const plain = { type: 'function', function: read }
      const strictTool = { type: 'function', function: { ...read, parameters: strict, strict: true } }
      expect([0, 1, 2, 3].map(sent)).toEqual([strictTool, strictTool, plain, plain])
      expect(profileFor(new URL('https://api.openai.com/v1'), 'gpt-4.1').strictTools).toBe(true)
      expect(profileFor(new URL(provider.baseUrl), 'gpt-4.1').strictTools).toBe(false)
    })
  })

  test('one after the other, and each only once', async () => {
    const all = ['include', 'reasoning', 'store', 'max_output_tokens']
    provider.add(...all.map((name) => refusal(`Unknown parameter: '${name}'.`)), fine)
    expect((await ask()()).text).toBe('fine')
    expect(Object.keys(provider.requests.at(-1)?.body ?? {})).toEqual(['model', 'input', 'tools', 'stream'])
    provider.add(refusal("Unknown parameter: 'store'."), refusal("Unknown parameter: 'store'."))
    await expect(ask()()).rejects.toMatchObject({ class: 'invalid_request' })
  })

  test('but a level that the model does not have is an error of its user', async () => {
    const words =
      "Unsupported value: 'reasoning.effort' does not support 'xhigh' with this model. Supported values are: 'low'."
    provider.add(refusal(words, 'reasoning.effort'))
    await expect(ask()()).rejects.toMatchObject({ class: 'invalid_request' })
    expect(provider.requests).toHaveLength(1)
  })

  test('the path, the key, and statuses keep their classes', async () => {
    provider.add(
      errorAnswer(401, { error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } }),
      errorAnswer(404, { error: { message: 'The model `m` does not exist', code: 'model_not_found' } }),
      errorAnswer(
        429,
        { error: { message: 'Slow down', code: 'rate_limit_exceeded' } },
        { 'retry-after': '3' },
      ),
      errorAnswer(400, {
        error: {
          message: 'The encrypted content g could not be verified.',
          code: 'invalid_encrypted_content',
        },
      }),
    )
    const asked = ask()
    for (const expected of [
      { class: 'auth', status: 401 },
      { class: 'invalid_request', status: 404 },
      { class: 'rate_limit', waitMs: 3_000 },
      { class: 'replay_refused', retryable: false },
    ])
      await expect(asked()).rejects.toMatchObject(expected)
    expect(provider.requests[0]).toMatchObject({
      path: '/v1/responses',
      headers: { authorization: 'Bearer k' },
    })
  })

  test('4,000 pieces of arguments are one call', async () => {
    const args = JSON.stringify({ text: 'x'.repeat(3_990) })
    provider.add({ steps: [events({ calls: [{ id: 'a', name: 'write', args }] }, 1).join('')] })
    const answer = await ask()()
    expect(answer.calls).toEqual([{ id: 'a', name: 'write', args: JSON.parse(args) }])
  })
})
