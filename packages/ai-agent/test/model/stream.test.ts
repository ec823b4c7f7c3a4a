/** Whole answers from bytes. Tests are named by the rows of the list of bugs that come back everywhere. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sse, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { callsOf, deltas, readPieces, readText, streamOf } from './read-stream.ts'

const bytesOf = (steps: readonly unknown[]): string =>
  steps.filter((step) => typeof step === 'string').join('')

/** Streams as they were sent, in their oddest forms. */
const RECORDED: Record<string, string> = {
  text: bytesOf(textAnswer('Grüße, 世界 😀!', { pieceLength: 3, reasoning: 'hm …' }).steps),
  calls: bytesOf(
    toolCalls(
      [
        { id: 'a', name: 'read_file', args: { path: 'ä.txt' } },
        { id: 'b', name: 'read_file', args: { path: 'b.txt' } },
      ],
      { text: 'I look.' },
    ).steps,
  ),
  'comments, CRLF, no space':
    ': hi\r\n\r\ndata:{"choices":[{"delta":{"content":"a"}}]}\r\n\r\n: ping\r\n\r\ndata:{"choices":[{"delta":{"content":"é"},"finish_reason":"stop"}]}\r\n\r\ndata:[DONE]\r\n\r\n',
  'no blank lines between events':
    'data: {"choices":[{"delta":{"content":"a"}}]}\ndata: {"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}\ndata: [DONE]\n',
  'no [DONE], no last line end':
    'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: {"choices":[{"delta":{},"finish_reason":"stop"}]}',
  'one JSON body': JSON.stringify(
    {
      choices: [
        {
          message: {
            role: 'assistant',
            content: 'whole ß',
            tool_calls: [{ id: 'a', function: { name: 'x', arguments: '{}' } }],
          },
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4 },
    },
    null,
    2,
  ),
  'a JSON object a line':
    '{"choices":[{"delta":{"content":"a"}}]}\n{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}\n',
}

describe('property: any cut of the bytes gives the same answer', () => {
  test.each(Object.keys(RECORDED))('%s', async (name) => {
    const bytes = new TextEncoder().encode(RECORDED[name])
    const whole = await readPieces([bytes])
    expect(whole.answer.text.length + whole.answer.calls.length).toBeGreaterThan(0)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 12 }), async (cuts) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
        const read = await readPieces(places.slice(1).map((to, index) => bytes.subarray(places[index], to)))
        expect(read).toEqual(whole)
      }),
      { numRuns: 60 },
    )
    expect(await readPieces([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(whole)
  })

  test('what is shown is what the answer says', async () => {
    for (const text of Object.values(RECORDED)) {
      const { answer, chunks } = await readText(text)
      const shown = (type: string): string =>
        chunks.map((chunk) => (chunk.type === type && 'text' in chunk ? chunk.text : '')).join('')
      expect(shown('text')).toBe(answer.text)
      expect(shown('thought')).toBe(answer.thought)
    }
  })
})

describe('bug 11: reasoning', () => {
  const call = { tool_calls: [{ index: 0, id: 'a', function: { name: 'x', arguments: '{}' } }] }

  test.each(['reasoning_content', 'reasoning'])(
    '%s is shown as thought and kept for the provider, with calls',
    async (field) => {
      const { answer } = await readText(streamOf(deltas([{ [field]: 'I ' }, { [field]: 'think' }, call])))
      expect(answer).toMatchObject({
        text: '',
        thought: 'I think',
        replay: [{ raw: { [field]: 'I think' } }],
      })
    },
  )

  test('without calls nothing has to go back', async () => {
    const { answer } = await readText(
      streamOf(deltas([{ reasoning_content: 'I think' }, { content: 'so' }], 'stop')),
    )
    expect(answer).toMatchObject({ text: 'so', thought: 'I think' })
    expect(answer).not.toHaveProperty('replay')
  })

  test('under two names at once it is one thought', async () => {
    const { answer } = await readText(streamOf(deltas([{ reasoning: 'a', reasoning_content: 'a' }, call])))
    expect(answer.thought).toBe('a')
  })

  test('reasoning_details are joined piece by piece', async () => {
    const detail = (fields: object) => ({
      reasoning_details: [{ type: 'reasoning.text', index: 0, ...fields }],
    })
    const { answer } = await readText(
      streamOf(deltas([detail({ text: 'a' }), detail({ text: 'b' }), detail({ signature: 's' }), call])),
    )
    const block = { type: 'reasoning.text', index: 0, text: 'ab', signature: 's' }
    expect(answer.replay).toEqual([{ raw: { reasoning_details: [block] } }])
  })

  test('parts of content', async () => {
    const parts = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
      { type: 'text', text: 'yes' },
    ]
    expect((await readText(streamOf(deltas([{ content: parts }], 'stop')))).answer).toMatchObject({
      thought: 'hm',
      text: 'yes',
    })
  })
})

describe('bug 14: usage', () => {
  const usage = {
    prompt_tokens: 7,
    completion_tokens: 3,
    prompt_tokens_details: { cached_tokens: 2 },
    completion_tokens_details: { reasoning_tokens: 1 },
  }
  const expected = { input: 7, output: 3, cached: 2, reasoning: 1 }
  test.each<[string, unknown[]]>([
    ['in a last chunk without choices', [...deltas([{ content: 'a' }], 'stop'), { choices: [], usage }]],
    ['in the choice', [{ choices: [{ delta: { content: 'a' }, finish_reason: 'stop', usage }] }]],
    ['in x_groq', [{ choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }], x_groq: { usage } }]],
    [
      'on every chunk: the last wins',
      [
        { choices: [{ delta: { content: 'a' } }], usage: { prompt_tokens: 7, completion_tokens: 1 } },
        { choices: [{ delta: {}, finish_reason: 'stop' }], usage },
      ],
    ],
    [
      'null is none',
      [
        { choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }], usage },
        { choices: [], usage: null },
      ],
    ],
  ])('%s', async (_, chunks) => {
    expect((await readText(streamOf(chunks))).answer.usage).toEqual(expected)
  })

  test("DeepSeek's names", async () => {
    const chunk = {
      choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 7, completion_tokens: 3, prompt_cache_hit_tokens: 2 },
    }
    expect((await readText(streamOf([chunk]))).answer.usage).toEqual({ input: 7, output: 3, cached: 2 })
  })

  test.each<[string, object, object]>([
    [
      'OpenRouter',
      {
        prompt_tokens: 9,
        completion_tokens: 3,
        prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: 5 },
      },
      { input: 9, output: 3, cached: 2, cacheWritten: 5 },
    ],
    [
      'Anthropic',
      {
        input_tokens: 2,
        output_tokens: 3,
        cache_creation_input_tokens: 7,
        cache_creation: { ephemeral_5m_input_tokens: 4, ephemeral_1h_input_tokens: 3 },
      },
      { input: 9, output: 3, cacheWritten: 7, cacheWrittenHour: 3 },
    ],
  ])('tokens that %s wrote to the cache are part of the input', async (_, usage, known) => {
    const chunk = { choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }], usage }
    expect((await readText(streamOf([chunk]))).answer.usage).toEqual(known)
  })

  test.each<[string, Record<string, number>, object]>([
    [
      "Gemini's thoughts",
      { prompt_tokens: 7, completion_tokens: 3, total_tokens: 1_000 },
      { input: 7, output: 993, reasoning: 990 },
    ],
    ['thoughts without an answer', { prompt_tokens: 7, total_tokens: 1_000 }, { input: 7, output: 993 }],
    ['nothing else', { total_tokens: 1_000 }, { output: 1_000 }],
    [
      'a cache that is counted twice',
      { prompt_tokens: 7, completion_tokens: 3, total_tokens: 12, cached_tokens: 2 },
      { input: 7, output: 3, cached: 2 },
    ],
    [
      'a total that is too small',
      { prompt_tokens: 7, completion_tokens: 3, total_tokens: 3 },
      { input: 7, output: 3 },
    ],
  ])('what only the total knows counts as output: %s', async (_, counts, usage) => {
    const chunk = { choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }], usage: counts }
    expect((await readText(streamOf([chunk]))).answer.usage).toEqual(usage)
  })
})

describe('bug 16: errors inside a 200 stream', () => {
  const before = sse({ choices: [{ delta: { content: 'half' } }] })
  test.each<[string, string, object]>([
    [
      'in the chunk',
      sse({ error: { message: 'Overloaded', type: 'overloaded_error' } }),
      { class: 'overloaded', retryable: true },
    ],
    [
      'beside choices',
      sse({ choices: [{ delta: {} }], error: { message: 'boom', code: 502 } }),
      { class: 'server_error', status: 502 },
    ],
    [
      'in the choice',
      sse({
        choices: [
          { delta: { content: '' }, finish_reason: 'error', error: { message: 'rate limit', code: 429 } },
        ],
      }),
      { class: 'rate_limit' },
    ],
    ['a text', sse({ error: 'something broke' }), { class: 'provider_error', retryable: true }],
    [
      'an event called error',
      'event: error\ndata: {"message":"Internal server error"}\n\n',
      { class: 'server_error' },
    ],
    [
      'an event called error, in words',
      'event: error\ndata: upstream died\n\n',
      { class: 'provider_error', message: expect.stringContaining('upstream died') },
    ],
    [
      'an error field',
      'error: {"code":500,"message":"context shift is disabled","type":"server_error"}\n\n',
      { class: 'server_error' },
    ],
    [
      'an object that is an error',
      sse({ object: 'error', message: 'maximum context length is 4096 tokens', code: 400 }),
      { class: 'context_overflow', retryable: false },
    ],
    ['code and message', sse({ code: 'InvalidParameter', message: 'bad' }), { class: 'invalid_request' }],
    ['detail', sse({ detail: 'nope' }), { class: 'provider_error' }],
    [
      'a list of errors',
      sse({ success: false, errors: [{ message: 'Too many requests' }] }),
      { class: 'rate_limit' },
    ],
    [
      "Baidu's names",
      sse({ error_code: 336501, error_msg: 'Rate limit reached for RPM' }),
      { class: 'rate_limit' },
    ],
    ['true, with a message', sse({ error: true, message: 'service busy' }), { class: 'overloaded' }],
    ['a text that is no JSON', 'data: [ERROR] upstream overloaded\n\n', { class: 'overloaded' }],
    ['in x_groq', sse({ choices: [], x_groq: { error: 'over capacity' } }), { class: 'overloaded' }],
    [
      'base_resp',
      sse({ base_resp: { status_code: 1002, status_msg: 'rate limit' } }),
      { class: 'rate_limit' },
    ],
    [
      'plain JSON in the stream',
      '{"error":{"message":"insufficient_quota"}}\n\n',
      { class: 'quota', retryable: false },
    ],
    ['a timeout', sse({ choices: [{ delta: {}, finish_reason: 'timeout' }] }), { class: 'timeout' }],
    [
      'the engine',
      sse({ choices: [{ delta: {}, finish_reason: 'engine_error' }] }),
      { class: 'server_error', retryable: true },
    ],
    ['only a word', sse({ choices: [{ delta: {}, finish_reason: 'error' }] }), { class: 'provider_error' }],
    [
      'a word for a call that went wrong',
      sse({ choices: [{ delta: {}, finish_reason: 'MALFORMED_FUNCTION_CALL' }] }),
      { class: 'malformed_tool_call', retryable: true },
    ],
    [
      'a word for a signature that was not sent back',
      sse({ choices: [{ delta: {}, finish_reason: 'MISSING_THOUGHT_SIGNATURE' }] }),
      { class: 'invalid_history', retryable: false },
    ],
    [
      'a word for an answer that went wrong',
      sse({ choices: [{ delta: {}, finish_reason: 'malformed_response' }] }),
      { class: 'provider_error', retryable: true },
    ],
  ])('%s', async (_, event, expected) => {
    await expect(readText(before + event + sse('[DONE]'))).rejects.toMatchObject(expected)
  })

  test('a notice of a proxy is none', async () => {
    const notice = { type: 'status', message: 'queued' }
    expect((await readText(streamOf([notice, ...deltas([{ content: 'a' }], 'stop')]))).answer.text).toBe('a')
  })

  test.each([null, '', false, {}, []])('error: %j is none', async (error) => {
    expect(
      (await readText(streamOf([{ error, choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }] }])))
        .answer.text,
    ).toBe('a')
  })

  test('alone, as a JSON body, also in a list', async () => {
    const body = JSON.stringify({ error: { code: 400, message: 'bad', status: 'INVALID_ARGUMENT' } })
    await expect(readText(body)).rejects.toMatchObject({ class: 'invalid_request', status: 400 })
    await expect(readText(`[${body}]`)).rejects.toMatchObject({ class: 'invalid_request' })
  })
})

describe('bug 17: the end of a stream', () => {
  const half = streamOf(deltas([{ content: 'half' }], null), false)
  const interrupted = { class: 'stream_interrupted', retryable: true }

  test('neither finish nor [DONE] is an interruption', async () => {
    await expect(readText(half)).rejects.toMatchObject(interrupted)
    await expect(readText('')).rejects.toMatchObject(interrupted)
    await expect(readText(': ping\n\n')).rejects.toMatchObject(interrupted)
    await expect(readText(`${half}data: {"choices":[{"delta":{"con`)).rejects.toMatchObject(interrupted)
  })

  test('a finish word that says "not yet" is no end', async () => {
    for (const word of ['null', '', 'None', 'FINISH_REASON_UNSPECIFIED', 'not_finished']) {
      await expect(readText(streamOf(deltas([{ content: 'half' }], word), false))).rejects.toMatchObject(
        interrupted,
      )
    }
  })

  test('one of them is enough', async () => {
    expect((await readText(`${half}data: [DONE]\n\n`)).answer).toMatchObject({
      text: 'half',
      finish: 'unknown',
    })
    expect((await readText(half + streamOf(deltas([], 'stop'), false))).answer).toMatchObject({
      text: 'half',
      finish: 'stop',
    })
  })

  test('a JSON body that was cut', async () => {
    await expect(readText((RECORDED['one JSON body'] ?? '').slice(0, -20))).rejects.toMatchObject(interrupted)
  })

  test('what follows [DONE] is not read', async () => {
    expect(
      (await readText(`${half}data: [DONE]\n\n${sse({ error: { message: 'late' } })}`)).answer.text,
    ).toBe('half')
  })
})

test('a web page or foreign JSON is a protocol error that names OPENAI_BASE_URL', async () => {
  for (const body of ['<!DOCTYPE html><html></html>', '\n <html>', '{"hello":"world"}']) {
    await expect(readText(body)).rejects.toMatchObject({
      class: 'protocol',
      retryable: false,
      message: expect.stringContaining('OPENAI_BASE_URL'),
    })
  }
})

test('an event that is no JSON is a protocol error; a ping is not', async () => {
  await expect(readText(`data: {"choices": oops}\n\n${sse('[DONE]')}`)).rejects.toMatchObject({
    class: 'protocol',
    retryable: true,
  })
  expect((await readText(`data: ping\n\n${streamOf(deltas([{ content: 'a' }], 'stop'))}`)).answer.text).toBe(
    'a',
  )
})

test('finish words', async () => {
  for (const [word, finish] of [
    ['stop', 'stop'],
    ['eos', 'stop'],
    ['max_tokens', 'length'],
    ['MAX_TOKENS', 'length'],
    ['tool_use', 'tool_calls'],
    ['SAFETY', 'content_filter'],
    ['IMAGE_SAFETY', 'content_filter'],
    ['ERROR_TOXIC', 'content_filter'],
    ['ERROR_LIMIT', 'length'],
    ['toolUse', 'tool_calls'],
    ['tool-calls', 'tool_calls'],
    ['stop_token', 'stop'],
    ['FINISH_REASON_STOP', 'stop'],
    ['FINISH_REASON_MAX_TOKENS', 'length'],
    ['token_limit', 'length'],
    ['time_limit', 'length'],
    ['function_calls', 'tool_calls'],
    ['sauce', 'unknown'],
  ] as const) {
    const called = { tool_calls: [{ index: 0, id: 'x', function: { name: 'f', arguments: '{}' } }] }
    const said = finish === 'tool_calls' ? called : { content: 'a' }
    expect((await readText(streamOf(deltas([said], word)))).answer.finish).toBe(finish)
  }
})

test('a whole message after its deltas repeats them', async () => {
  const message = {
    role: 'assistant',
    content: 'ab',
    tool_calls: [{ index: 0, id: 'x', function: { name: 'f', arguments: '{"a":1}' } }],
  }
  const chunks = [
    ...deltas([{ content: 'a' }, { content: 'b' }, { tool_calls: message.tool_calls }], null),
    { choices: [{ message, finish_reason: 'stop' }] },
  ]
  expect((await readText(streamOf(chunks))).answer).toMatchObject({
    text: 'ab',
    calls: [{ id: 'x', args: { a: 1 } }],
  })
})

test('only the first of several choices is read, and unknown members are ignored', async () => {
  const chunk = {
    choices: [
      { index: 1, delta: { content: 'no' } },
      { index: 0, delta: { content: 'yes', other: 1 }, finish_reason: 'stop' },
    ],
    extra: [],
  }
  expect((await readText(streamOf([chunk]))).answer.text).toBe('yes')
})

test('the member of the older completions', async () => {
  const chunks = [{ choices: [{ index: 0, text: 'a' }] }, { choices: [{ text: 'b', finish_reason: 'stop' }] }]
  expect((await readText(streamOf(chunks))).answer.text).toBe('ab')
})

test('a call is shown when its arguments begin, and again when it has grown', async () => {
  const pieces = ['', '{"x', '":1', '}'].map((args, index) => ({
    tool_calls: [
      { index: 0, ...(index === 0 ? { id: 'a' } : {}), function: { name: 'one', arguments: args } },
    ],
  }))
  const { chunks } = await readText(streamOf(deltas(pieces)))
  expect(chunks).toEqual([{ type: 'call', place: 0, name: 'one', args: '{"x' }])
  expect(await callsOf([{ index: 0, id: 'a', function: { name: 'one' } }])).toHaveLength(1)
})

test('what is shown of a call is what has come of it, however it is cut, and costs no more than its length', async () => {
  const piece = fc.tuple(fc.nat({ max: 1 }), fc.string({ minLength: 1, maxLength: 200 }))
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 60 }), async (pieces) => {
      const values = [0, 1].map((place) => pieces.filter(([of]) => of === place).map(([, text]) => text))
      const whole = values.map((texts) => JSON.stringify({ text: texts.join('') }))
      // Both at once, each in as many deltas as it has pieces.
      const rows = Array.from({ length: pieces.length + 1 }, (_, step) => ({
        tool_calls: [0, 1].map((place) => {
          const text = whole[place] ?? ''
          const from = Math.floor((text.length * step) / (pieces.length + 1))
          const to = Math.floor((text.length * (step + 1)) / (pieces.length + 1))
          const begins = step === 0 ? { id: `c${place}`, type: 'function' } : {}
          return {
            index: place,
            ...begins,
            function: { ...(step === 0 ? { name: `tool${place}` } : {}), arguments: text.slice(from, to) },
          }
        }),
      }))
      const { chunks, answer } = await readText(streamOf(deltas(rows)))
      expect(answer.calls.map(({ args }) => JSON.stringify(args))).toEqual(whole)
      for (const place of [0, 1]) {
        const shown = chunks.flatMap((chunk) =>
          chunk.type === 'call' && chunk.place === place ? [chunk] : [],
        )
        expect(shown[0]).toMatchObject({ name: `tool${place}` })
        for (const [i, { args }] of shown.entries()) {
          expect(whole[place]?.startsWith(args)).toBe(true)
          expect(args.length - (shown[i - 1]?.args.length ?? -256)).toBeGreaterThanOrEqual(256)
        }
      }
    }),
  )
})
