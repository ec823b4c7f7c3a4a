/** Bug 16: what is an error in the middle of a 200 stream, and what only looks like one. From public threads and documentation. */
import { describe, expect, test } from 'vitest'
import { sse } from '../support/fake-provider.ts'
import type { ModelErrorClass } from '@sandlot/shared/chat/reasons'
import { AnswerAssembler } from '../../src/model/wires/chat/answer.ts'
import { deltas, readText, streamOf } from './read-stream.ts'

const half = sse({ choices: [{ index: 0, delta: { content: 'half' } }] })

describe('an error', () => {
  test.each<[string, unknown, ModelErrorClass]>([
    ['in an error', { error: { error: { message: 'Rate limit reached', code: 429 } } }, 'rate_limit'],
    [
      'as JSON in its words',
      { error: { message: '{"error":{"message":"prompt is too long"}}' } },
      'context_overflow',
    ],
    ['as a number', { error: 429 }, 'rate_limit'],
    ['in a list of texts', { errors: ['Too many requests'] }, 'rate_limit'],
    ['as a list', { error: [{ message: 'Too many requests' }] }, 'rate_limit'],
    ['in a detail', { detail: { error: 'Too many requests' } }, 'rate_limit'],
    ['beside usage', { choices: [], usage: {}, error: { message: 'Overloaded' } }, 'overloaded'],
    ['in the delta', { choices: [{ delta: { error: { message: 'Overloaded' } } }] }, 'overloaded'],
    ['by its state', { status: 'error', message: 'Internal server error' }, 'server_error'],
    ['of SiliconFlow', { code: 50603, message: 'System is really busy.', data: null }, 'overloaded'],
    ['of SiliconFlow, a model', { code: 20012, message: 'Model does not exist.' }, 'invalid_request'],
    ['of Baidu', { error_code: 336007, error_msg: 'the max input characters is 11200' }, 'context_overflow'],
    ['of AWS', { throttlingException: { message: 'Too many requests' } }, 'rate_limit'],
    ['of AWS, without words', { modelTimeoutException: {} }, 'timeout'],
    ['of AWS, by its type', { __type: 'ThrottlingException', message: 'Rate exceeded' }, 'rate_limit'],
    ['of Apigee', { fault: { faultstring: 'Rate limit quota violation' } }, 'rate_limit'],
    ['as a problem document', { type: 'about:blank', title: 'Too Many Requests', status: 429 }, 'rate_limit'],
    [
      'of Cloudflare',
      { success: false, errors: [{ code: 3040, message: 'Capacity temporarily exceeded' }] },
      'overloaded',
    ],
    [
      'of OpenRouter, moderation',
      { error: { code: 403, message: 'Input was flagged', metadata: { reasons: ['x'] } } },
      'content_filter',
    ],
    [
      'in a choice, beside a text',
      { choices: [{ delta: { content: 'x' }, error: { message: 'Overloaded' } }] },
      'overloaded',
    ],
    [
      'of Groq, beside a text',
      { choices: [{ delta: { content: 'x' } }], x_groq: { error: 'over capacity' } },
      'overloaded',
    ],
    [
      'in the native word alone',
      { choices: [{ delta: { content: 'x' }, native_finish_reason: 'MALFORMED_FUNCTION_CALL' }] },
      'malformed_tool_call',
    ],
    [
      'of MiniMax, beside a choice',
      {
        choices: [{ index: 0, delta: { content: '' } }],
        base_resp: { status_code: 1027, status_msg: 'output new_sensitive' },
      },
      'content_filter',
    ],
  ])('%s', async (_, chunk, errorClass) => {
    await expect(readText(half + sse(chunk) + sse('[DONE]'))).rejects.toMatchObject({ class: errorClass })
  })
})

test('LM Studio says under a 200 that it has no such path: the base URL is at fault', async () => {
  const body = JSON.stringify({ error: 'Unexpected endpoint or method. (POST /chat/completions)' })
  await expect(readText(body)).rejects.toMatchObject({
    class: 'invalid_request',
    retryable: false,
    message: expect.stringContaining('Check OPENAI_BASE_URL (it usually ends in /v1)'),
  })
})

test("a model's template that cannot be rendered fails each time", async () => {
  const error = {
    message: 'Error rendering prompt with jinja template: "Cannot call something that is not a function".',
  }
  const refused = {
    class: 'invalid_request',
    retryable: false,
    message: expect.stringMatching(
      /jinja.* Check the prompt template of "m", and OPENAI_BASE_URL, which may lack \/v1\.$/,
    ),
  }
  await expect(readText(half + sse({ error }))).rejects.toMatchObject(refused)
  const typed = { error: { ...error, type: 'server_error', code: 500 } }
  await expect(readText(half + sse(typed))).rejects.toMatchObject(refused)
  // Roles that the template refuses are mended.
  const roles =
    'Error rendering prompt with jinja template: "Conversation roles must alternate user/assistant".'
  await expect(readText(half + sse({ error: roles }))).rejects.toMatchObject({ class: 'invalid_history' })
})

describe('none', () => {
  test.each<[string, unknown]>([
    ['success of iFlytek', { code: 0, message: 'Success', sid: 'x' }],
    ['200 as a code', { code: 200, message: 'ok', data: null }],
    ['a place in a queue', { status: 'queued', message: 'position 3', type: 'queue' }],
    ['work in progress', { status: 'processing', message: 'Your request is being processed' }],
    ['a heartbeat with a code', { type: 'heartbeat', message: 'alive', code: 'HEARTBEAT' }],
    ["MiniMax's zero", { base_resp: { status_code: 0, status_msg: '' } }],
    ['a warning', { warning: 'deprecated', message: 'use another model' }],
    ['filter results', { choices: [], prompt_filter_results: [{ content_filter_results: {} }] }],
    ['an empty detail', { choices: [], error: null, detail: null }],
  ])('%s', async (_, chunk) => {
    const stream = half + sse(chunk) + streamOf(deltas([], 'stop'))
    expect((await readText(stream)).answer).toMatchObject({ text: 'half', finish: 'stop' })
  })
})

test('arguments that come after a finish word are waited for like text', () => {
  const answer = new AnswerAssembler(() => undefined)
  for (const chunk of deltas([], 'tool_calls')) answer.push(chunk)
  expect(answer.quiet).toBe(true)
  const piece = { tool_calls: [{ index: 0, id: 'a', function: { name: 'one', arguments: '' } }] }
  for (const chunk of deltas([piece], null)) answer.push(chunk)
  expect(answer.quiet).toBe(false)
})
