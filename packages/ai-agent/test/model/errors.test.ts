import { describe, expect, test } from 'vitest'
import { toModelError, withoutAddresses } from '../../src/model/errors.ts'
import { failureOfResponse } from '../../src/model/failure.ts'
import type { ModelErrorClass, SetIn } from '@sandlot/shared/chat/reasons'

const CONTEXT = { model: 'm', baseUrl: 'https://api.example/v1', apiKey: 'sk-abcdef' }

function classify(status: number, body: unknown): ModelErrorClass {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return toModelError(failureOfResponse(status, new Headers(), text), CONTEXT).class
}
const said = (message: string, code?: string) => ({ error: { message, code } })

describe('bug 20: overflow in its many forms', () => {
  test.each<[number, string]>([
    [
      400,
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    ],
    [400, 'prompt is too long: 250000 tokens > 200000 maximum'],
    [400, 'input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000'],
    [400, 'Input is too long for requested model.'],
    [400, 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'],
    [400, 'the request exceeds the available context size, try increasing it'],
    [
      500,
      'the request exceeds the available context size. try increasing the context size or enable context shift',
    ],
    [400, 'Please reduce the length of the messages or completion.'],
    [400, "This model's maximum prompt length is 131072 but the request contains 140000 tokens."],
    [400, 'Range of input length should be [1, 129024]'],
    [400, 'Invalid request: Your request exceeded model token limit: 131072'],
    [400, 'too many tokens: size limit exceeded by 1000 tokens.'],
    [400, 'The number of tokens to keep from the initial prompt is greater than the context length.'],
    [
      400,
      'Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens',
    ],
    [
      400,
      'Prompt contains 40011 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    ],
    [422, 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.'],
    [400, 'prompt too long; exceeded max context length by 20 tokens'],
    [400, 'Prompt exceeds max length'],
    [400, 'invalid params, context window exceeds limit (2013)'],
    [413, 'Your input exceeds the context window of this model. Please adjust your input and try again.'],
  ])('%i %s', (status, message) => {
    expect(classify(status, said(message))).toBe('context_overflow')
  })

  test('by its code alone', () => {
    expect(classify(400, said('no', 'context_length_exceeded'))).toBe('context_overflow')
  })

  test.each<[number, string]>([
    [
      429,
      'Rate limit reached for gpt in organization on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000.',
    ],
    [429, 'Too many tokens, please wait before trying again.'],
    [400, 'ThrottlingException: Too many tokens per minute'],
    [413, 'Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000'],
    [429, 'Your request exceeded model token limit'],
  ])('a throttle is no overflow: %i %s', (status, message) => {
    expect(classify(status, said(message))).toBe('rate_limit')
  })
})

test.each<[ModelErrorClass, number, unknown]>([
  ['auth', 401, said('maximum context length')],
  ['auth', 403, said('You do not have access')],
  ['quota', 402, said('Insufficient Balance')],
  [
    'quota',
    429,
    said(
      'You exceeded your current quota, please check your plan and billing details.',
      'insufficient_quota',
    ),
  ],
  ['quota', 400, said('Your credit balance is too low to access the API.')],
  ['rate_limit', 429, 'slow down'],
  ['overloaded', 529, said('Overloaded')],
  ['overloaded', 503, '<html><head><title>503 Service Unavailable</title></head></html>'],
  [
    'overloaded',
    429,
    said('The engine is currently overloaded, please try again later', 'engine_overloaded_error'),
  ],
  ['server_error', 500, said('The server had an error')],
  ['server_error', 502, '<html>bad gateway</html>'],
  ['server_error', 504, said('upstream timed out')],
  ['timeout', 408, 'timeout'],
  ['request_too_large', 413, 'payload too large'],
  ['invalid_request', 400, said("Unsupported parameter: 'max_tokens'")],
  ['invalid_request', 404, said('The model `m` does not exist', 'model_not_found')],
  ['invalid_request', 422, { detail: [{ msg: 'field required' }] }],
  [
    'invalid_history',
    400,
    said(
      "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: a",
    ),
  ],
  [
    'invalid_history',
    400,
    said("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."),
  ],
  [
    'invalid_history',
    400,
    said('The reasoning_content in the thinking mode must be passed back to the API.'),
  ],
  [
    'content_filter',
    400,
    said("The response was filtered due to Azure OpenAI's content management policy.", 'content_filter'),
  ],
  [
    'content_filter',
    400,
    { code: 'data_inspection_failed', message: 'Input data may contain inappropriate content.' },
  ],
  ['tool_use_failed', 400, said('Failed to call a function. Please adjust your prompt.', 'tool_use_failed')],
])('%s: %i %j', (expected, status, body) => {
  expect(classify(status, body)).toBe(expected)
})

test('the sentence has the words of the provider, short and on one line', () => {
  const error = toModelError(
    failureOfResponse(400, new Headers(), JSON.stringify(said(`bad\n${'x'.repeat(5_000)}`))),
    CONTEXT,
  )
  expect(error.message).toMatch(/^The model provider refused the request \(400\): bad x+…$/)
  expect(error.message.length).toBeLessThan(600)
})

test('404 names both settings that may be wrong', () => {
  const { message } = toModelError(failureOfResponse(404, new Headers(), '404 page not found'), CONTEXT)
  expect(message).toMatch(/OPENAI_BASE_URL/)
  expect(message).toMatch(/OPENAI_MODEL/)
})

describe('the sentence for members', () => {
  const INNER = 'http://llm.corp.internal:8000/v1'
  const errorAt = (status: number, message: string, setIn?: SetIn, apiKey = 'sk-1234') =>
    toModelError(failureOfResponse(status, new Headers(), JSON.stringify(said(message))), {
      model: 'm',
      apiKey,
      baseUrl: INNER,
      setIn,
    })

  test.each([
    [401, 'Incorrect key.'],
    [404, `No route on ${INNER}/chat/completions`],
    [429, 'Slow down, llm.corp.internal:8000 has 3 slots.'],
    [402, 'Pay at http://billing:9000/pay or http://10.1.2.3.'],
    [500, 'upstream 192.168.7.9:4000 and localhost:11434/api refused, version 10.2'],
    [400, 'Jinja template: error rendering prompt'],
  ])('%i names no address and no setting', (status, message) => {
    for (const setIn of ['page', 'configuration', undefined] as const) {
      const { forMembers } = errorAt(status, message, setIn)
      expect(forMembers).not.toMatch(/corp|billing|10\.1|192\.168|localhost|\d{4}|OPENAI|Settings|http/)
      expect(forMembers).not.toBe('')
    }
  })

  test.each([
    ['172.20.0.5; retry', '…; retry'],
    ['172.20.0.5...retry', '…...retry'],
    ['10.1.2.3.', '….'],
    ['(169.254.1.2:80), then', '(…), then'],
    ['dial tcp [fd12:3456:789a::1]:8000: refused', 'dial tcp …: refused'],
    ['fd12:3456::1, fe80::1%eth0 and ::1', '…, … and …'],
    ['upstream vllm-2:8000/v1 and billing:9000; down', 'upstream … and …; down'],
    ['lookup llm.corp.internal, llm.corp.internal:9', 'lookup …, …'],
    ['LLM.Corp.Internal', '…'],
    ['at 12:3000, version 10.2.3, tag qwen3:8b', 'at 12:3000, version 10.2.3, tag qwen3:8b'],
  ])('redacts the private addresses of %j', (words, shown) => {
    expect(withoutAddresses(words, INNER)).toBe(shown)
  })

  test('redacts a short host name only where it is a word', () => {
    const words = 'llama-server at ai:80 and http://ai/v1 failed: mail ai.'
    expect(withoutAddresses(words, 'http://ai:80/v1')).toBe('llama-server at … and … failed: mail ….')
  })

  test('keeps the address of a public page, and the provider’s words', () => {
    const words = 'See https://platform.openai.com/account/billing for version 1.10.2.3 of x.y.'
    expect(errorAt(402, words).forMembers).toContain(words)
  })

  test('comes with the place of the setting, where one may be wrong', () => {
    expect(errorAt(401, 'no', 'page')).toMatchObject({
      setIn: 'page',
      message: expect.not.stringContaining('OPENAI'),
    })
    expect(errorAt(404, 'no')).toMatchObject({
      setIn: 'configuration',
      message: expect.stringContaining(INNER),
    })
    expect(errorAt(429, 'no').setIn).toBeUndefined()
  })
})

test("OpenRouter's inner error is read", () => {
  const body = {
    error: {
      message: 'Provider returned error',
      code: 400,
      metadata: { raw: '{"error":{"message":"prompt is too long"}}' },
    },
  }
  expect(classify(400, body)).toBe('context_overflow')
})
