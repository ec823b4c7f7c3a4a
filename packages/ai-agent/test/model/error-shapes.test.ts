/**
 * Positions of a failure's words, delay and verdict, whatever the words are. From public threads
 * and documentation.
 */
import { describe, expect, test } from 'vitest'
import { sse } from '../support/fake-provider.ts'
import { toModelError } from '../../src/model/errors.ts'
import { failureOfResponse } from '../../src/model/failure.ts'
import type { ModelError } from '../../src/model/model.ts'
import { transportError } from '../../src/model/transport.ts'
import { readText } from './read-stream.ts'

const CONTEXT = { model: 'm', baseUrl: 'https://api.example/v1', apiKey: 'sk-abcdef' }
const TOO_LONG = 'prompt is too long'

function errorOf(status: number, body: unknown, headers: Record<string, string> = {}): ModelError {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return toModelError(failureOfResponse(status, new Headers(headers), text), CONTEXT)
}

test.each<[string, object]>([
  ['beside an error that is only a name', { error: 'Bad Request', message: TOO_LONG, statusCode: 400 }],
  ["OAuth's names", { error: 'invalid_request', error_description: TOO_LONG }],
  ["AWS's capital", { Message: TOO_LONG }],
  ['errmsg', { errmsg: TOO_LONG, errcode: 40_001 }],
  ['errorMessage', { errorCode: 'X', errorMessage: TOO_LONG }],
])('the words: %s', (_, body) => {
  const error = errorOf(400, body)
  expect(error.class).toBe('context_overflow')
  expect(error.message).toContain(TOO_LONG)
})

test('the code beside an error that is a text counts too', () => {
  expect(errorOf(400, { code: 'context_length_exceeded', error: 'no' }).class).toBe('context_overflow')
})

describe('the wait', () => {
  test.each<[string, object, number]>([
    ['a duration in a member', { error: { message: 'x', retry_after: '30s' } }, 30_000],
    ['in the metadata', { error: { message: 'x', metadata: { retry_after: 7 } } }, 7_000],
    ['in Chinese', { error: { message: '请求过于频繁，请在 30 秒后重试' } }, 30_000],
    ['in Chinese, minutes', { error: { message: '请稍后再试，2分钟后可用' } }, 120_000],
    ['beside a text', { error: 'rate_limited', message: 'Try again in 2s' }, 2_000],
  ])('%s', (_, body, waitMs) => {
    expect(errorOf(429, body).waitMs).toBe(waitMs)
  })

  test('until a moment', () => {
    const { waitMs } = errorOf(429, { error: { message: 'Please retry after 2099-01-01T00:00:00Z.' } })
    expect(waitMs).toBeGreaterThan(1e9)
  })

  test('a moment that is no wait', () => {
    expect(errorOf(429, { error: { message: 'Failed at 2099-01-01T00:00:00Z.' } }).waitMs).toBeUndefined()
  })
})

test.each(['Please retry 3 more times', 'no account is available: 5 machines are down'])(
  'a number of something is no wait: %s',
  (words) => {
    expect(errorOf(429, { error: { message: words } }).waitMs).toBeUndefined()
  },
)

describe('the verdict is the provider’s where it gives one', () => {
  test.each([
    [429, 'false', false],
    [400, 'true', true],
    [429, 'maybe', true],
  ])('%i, x-should-retry: %s', (status, header, retryable) => {
    expect(errorOf(status, { error: { message: 'x' } }, { 'x-should-retry': header }).retryable).toBe(
      retryable,
    )
  })
})

test('a method that is not allowed is an address that is wrong', () => {
  expect(errorOf(405, '405 Method Not Allowed').message).toContain('OPENAI_BASE_URL')
})

test.each<[string, object, string]>([
  [
    'a text with words beside it',
    { error: 'rate_limited', message: 'Too many requests. Try again in 2s' },
    'rate_limit',
  ],
  ['names in another spelling', { errCode: 500, errMsg: 'boom' }, 'server_error'],
  ['a status in another spelling', { statusCode: 503, message: 'no' }, 'overloaded'],
])('in a stream: %s', async (_, chunk, errorClass) => {
  const half = sse({ choices: [{ index: 0, delta: { content: 'half' } }] })
  await expect(readText(half + sse(chunk) + sse('[DONE]'))).rejects.toMatchObject({
    class: errorClass,
    retryable: true,
  })
})

test.each(['thinking', 'loading', 'in progress', 'completed'])(
  'in a stream: a notice of the state "%s" is no failure',
  async (status) => {
    const notice = { type: 'status', status, message: 'Reading three files' }
    const answer = { choices: [{ index: 0, delta: { content: 'ab' }, finish_reason: 'stop' }] }
    expect((await readText(sse(notice) + sse(answer) + sse('[DONE]'))).answer.text).toBe('ab')
  },
)

test('the words of an answer are not those of the failure beside it', async () => {
  const message = { role: 'assistant', content: 'It said: unauthorized, invalid api key.' }
  const body = JSON.stringify({ choices: [{ index: 0, message, error: 'upstream went away' }] })
  await expect(readText(body)).rejects.toMatchObject({
    class: 'provider_error',
    retryable: true,
    message: expect.not.stringContaining('api key'),
  })
})

test('a failure of the network without words has a sentence all the same', () => {
  const { message } = transportError(new Error(''), new URL('http://127.0.0.1:8000/v1'), false)
  expect(message).toContain(': the connection failed.')
})
