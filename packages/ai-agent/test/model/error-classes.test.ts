/** Failures in the words of each provider: class, retry verdict, wait. */
import { describe, expect, test } from 'vitest'
import { toModelError } from '../../src/model/errors.ts'
import { failureOfResponse } from '../../src/model/failure.ts'
import type { ModelErrorClass } from '@sandlot/shared/chat/reasons'
import type { ModelError } from '../../src/model/model.ts'

const CONTEXT = { model: 'm', baseUrl: 'https://api.example/v1', apiKey: 'sk-abcdef' }

function errorOf(status: number, body: unknown, headers: Record<string, string> = {}): ModelError {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return toModelError(failureOfResponse(status, new Headers(headers), text), CONTEXT)
}
const said = (message: string, more: object = {}) => ({ error: { message, ...more } })

/** Class, whether to ask again, and from whom. */
test.each<[ModelErrorClass, boolean, string, number, unknown]>([
  [
    'quota',
    false,
    'OpenAI without its code',
    429,
    said('You exceeded your current quota, please check your plan and billing details.'),
  ],
  [
    'rate_limit',
    true,
    'Gemini in the same words',
    429,
    [
      said(
        'You exceeded your current quota, please check your plan and billing details. Please retry in 32.5s.',
        { status: 'RESOURCE_EXHAUSTED' },
      ),
    ],
  ],
  [
    'quota',
    false,
    'Kimi',
    429,
    said('Your account is suspended, please check your plan and billing details', {
      type: 'exceeded_current_quota_error',
    }),
  ],
  [
    'quota',
    false,
    'DashScope',
    400,
    said('Access denied, please make sure your account is in good standing.', { code: 'Arrearage' }),
  ],
  [
    'quota',
    false,
    'DashScope, free tier',
    403,
    said('The free tier of the model has been exhausted.', { code: 'AllocationQuota.FreeTierOnly' }),
  ],
  ['quota', false, 'one-api', 403, said('用户额度不足', { code: 'insufficient_user_quota' })],
  [
    'quota',
    false,
    'OpenRouter',
    402,
    said('This request requires more credits, or fewer max_tokens.', { code: 402 }),
  ],
  [
    'quota',
    false,
    'LiteLLM',
    400,
    said('Budget has been exceeded! Current cost: 11, Max budget: 10', { type: 'budget_exceeded' }),
  ],
  [
    'rate_limit',
    true,
    'DashScope',
    429,
    said('You have exceeded your current request limit.', { code: 'limit_requests' }),
  ],
  [
    'rate_limit',
    true,
    'Azure',
    429,
    said(
      'Requests to the ChatCompletions_Create Operation have exceeded call rate limit. Please retry after 20 seconds.',
      { code: '429' },
    ),
  ],
  [
    'rate_limit',
    true,
    'Bedrock',
    400,
    said('ThrottlingException: Too many tokens, please wait before trying again.'),
  ],
  [
    'overloaded',
    true,
    'Kimi',
    429,
    said('The engine is currently overloaded, please try again later', { type: 'engine_overloaded_error' }),
  ],
  ['overloaded', true, 'Groq', 498, said('Flex tier capacity exceeded')],
  [
    'overloaded',
    true,
    'Anthropic',
    529,
    { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
  ],
  ['overloaded', true, 'llama.cpp', 503, said('Loading model', { type: 'unavailable_error', code: 503 })],
  ['overloaded', true, 'one-api', 503, said('当前分组 default 下对于模型 m 无可用渠道')],
  [
    'server_error',
    true,
    'Cloudflare',
    524,
    '<html><head><title>api.example | 524: A timeout occurred</title></head></html>',
  ],
  ['server_error', true, 'an empty body', 500, ''],
  ['invalid_request', false, 'an empty body', 400, ''],
  ['provider_error', true, 'a conflict', 409, said('conflict')],
  ['auth', false, 'OpenRouter', 401, said('No auth credentials found', { code: 401 })],
  [
    'auth',
    false,
    'Gemini',
    400,
    [said('API key not valid. Please pass a valid API key.', { status: 'INVALID_ARGUMENT' })],
  ],
  [
    'request_too_large',
    false,
    'nginx',
    413,
    '<html><head><title>413 Request Entity Too Large</title></head></html>',
  ],
  [
    'context_overflow',
    false,
    'LiteLLM',
    400,
    said('litellm.ContextWindowExceededError: ContextWindowExceededError: OpenAIException'),
  ],
  [
    'invalid_history',
    false,
    'OpenAI, an id of another provider',
    400,
    said(
      "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 43 instead.",
      { code: 'string_above_max_length' },
    ),
  ],
  [
    'invalid_history',
    false,
    'OpenAI, an id of another provider, through a proxy',
    400,
    said(
      "litellm.BadRequestError: OpenAIException - Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64.",
    ),
  ],
  [
    'invalid_history',
    false,
    'Anthropic, an id of another provider',
    400,
    said("messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
  ],
  [
    'invalid_history',
    false,
    'Mistral, an id of another provider',
    400,
    said('Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.'),
  ],
  [
    'invalid_history',
    false,
    'DeepSeek',
    400,
    said('An assistant message with tool_calls: insufficient tool messages following tool_calls message'),
  ],
  [
    'invalid_history',
    false,
    'Mistral',
    400,
    {
      object: 'error',
      message: 'Not the same number of function calls and responses',
      type: 'invalid_request_error',
      code: '3230',
    },
  ],
  [
    'invalid_history',
    false,
    'Mistral, order',
    400,
    {
      object: 'error',
      message: "Unexpected role 'user' after role 'tool'",
      type: 'invalid_request_message_order',
    },
  ],
  [
    'invalid_history',
    false,
    'Gemini',
    400,
    [
      said(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
        { status: 'INVALID_ARGUMENT' },
      ),
    ],
  ],
  [
    'invalid_history',
    false,
    'Gemini, signature',
    400,
    [
      said('Function call is missing a thought_signature in functionCall parts.', {
        status: 'INVALID_ARGUMENT',
      }),
    ],
  ],
  [
    'invalid_history',
    false,
    'Kimi',
    400,
    said('thinking is enabled but reasoning_content is missing in assistant tool call message at index 2', {
      type: 'invalid_request_error',
    }),
  ],
  [
    'invalid_history',
    false,
    'DashScope',
    400,
    said(
      '<400> InternalError.Algo.InvalidParameter: The "function.arguments" parameter of the code model must be in JSON format.',
      { code: 'invalid_parameter_error' },
    ),
  ],
  [
    'invalid_history',
    false,
    'Anthropic',
    400,
    said('messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1'),
  ],
  [
    'content_filter',
    false,
    'Azure',
    400,
    said("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", {
      code: 'content_filter',
      innererror: { code: 'ResponsibleAIPolicyViolation' },
    }),
  ],
  [
    'content_filter',
    false,
    'DashScope',
    400,
    said('Output data may contain inappropriate content.', { code: 'data_inspection_failed' }),
  ],
  [
    'content_filter',
    false,
    'OpenRouter',
    403,
    said('Your chosen model requires moderation and your input was flagged', { code: 403 }),
  ],
  [
    'tool_use_failed',
    true,
    'Groq',
    400,
    said("Failed to call a function. See 'failed_generation' for more details.", {
      type: 'invalid_request_error',
      code: 'tool_use_failed',
      failed_generation: '<x>',
    }),
  ],
  ['timeout', true, 'a proxy', 408, 'Request timeout'],
])('%s, again: %j: %s (%i)', (errorClass, retryable, _, status, body) => {
  expect(errorOf(status, body)).toMatchObject({ class: errorClass, retryable, status })
})

describe('bug 19: the wait that the provider names', () => {
  test.each<[string, Record<string, string>, unknown, number | undefined]>([
    ['seconds', { 'retry-after': '7' }, '', 7_000],
    ['parts of a second', { 'retry-after': '0.5' }, '', 500],
    ['milliseconds win', { 'retry-after': '7', 'retry-after-ms': '250' }, '', 250],
    ['a duration', { 'retry-after': '1m30s' }, '', 90_000],
    ['a date that has passed', { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, '', 0],
    ['nonsense', { 'retry-after': 'soon' }, '', undefined],
    ['words', {}, said('Please try again in 20s.'), 20_000],
    ['words, parts', {}, said('Please try again in 1h2m3.5s. Visit …'), 3_723_500],
    ['words, milliseconds', {}, said('Please try again in 88ms.'), 88],
    ['words, Azure', {}, said('Please retry after 1 second.'), 1_000],
    ['words, about', {}, said('Try again in about 5 minutes'), 300_000],
    ['words, wait', {}, said('You must wait 10 seconds before trying again'), 10_000],
    ['no number, no wait', {}, said('Please try again later.'), undefined],
    ["Google's delay", {}, [said('x', { details: [{}, { retryDelay: '34.07s' }] })], 34_070],
    ['a member', {}, said('x', { retry_after: 3 }), 3_000],
    [
      'a text under a text',
      {},
      said('Provider returned error', { metadata: { raw: 'Please try again in 2s' } }),
      2_000,
    ],
  ])('%s', (_, headers, body, expected) => {
    expect(errorOf(429, body, headers).waitMs).toBe(expected)
  })

  test("OpenRouter's moment", () => {
    const reset = String(Date.now() + 60_000)
    const { waitMs } = errorOf(429, said('x', { metadata: { headers: { 'X-RateLimit-Reset': reset } } }))
    expect(waitMs).toBeGreaterThan(50_000)
    expect(waitMs).toBeLessThanOrEqual(60_000)
  })
})
