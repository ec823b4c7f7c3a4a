/**
 * Bodies in the shape of an answer that are none: requested again unchanged, and never taken for
 * the model's words.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createHttpModel, readAnswer } from '../../src/model/http-model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import {
  type FakeAnswer,
  type FakeProvider,
  sse,
  startFakeProvider,
  textAnswer,
} from '../support/fake-provider.ts'
import { DEFAULT_PROFILE } from '../../src/model/profiles.ts'
import { chatWire } from '../../src/model/wires/chat/chat-wire.ts'
import { BodyReader } from '../../src/model/sse.ts'
import { CONTEXT, deltas, readText, streamOf } from './read-stream.ts'

const stream = (text: string): FakeAnswer => ({ steps: [text] })
const THROTTLE = 'Throttling.RateQuota: Requests rate limit exceeded, please try again later.'

const SHAPES: [string, string, string][] = [
  [
    "DashScope's throttle as content",
    streamOf([{ choices: [{ delta: { content: THROTTLE }, finish_reason: 'error_finish' }] }]),
    'rate_limit',
  ],
  [
    'error_finish behind a part of an answer',
    streamOf([
      ...deltas([{ content: 'half' }], null),
      { choices: [{ delta: {}, finish_reason: 'error_finish' }] },
    ]),
    'provider_error',
  ],
  ['nothing but [DONE]', sse('[DONE]'), 'provider_error'],
  [
    'an empty delta and [DONE]',
    streamOf(deltas([{ role: 'assistant', content: '' }], null)),
    'provider_error',
  ],
  [
    'an announced call that does not come',
    streamOf(deltas([{ content: '' }], 'tool_calls')),
    'malformed_tool_call',
  ],
  [
    'the same behind a text',
    streamOf(deltas([{ content: 'I will look.' }], 'tool_calls')),
    'malformed_tool_call',
  ],
  [
    'a network error as native finish reason',
    streamOf([
      { choices: [{ delta: { content: 'half' } }] },
      { choices: [{ delta: {}, finish_reason: 'stop', native_finish_reason: 'network_error' }] },
    ]),
    'server_error',
  ],
]

test.each(SHAPES)('%s is a failure', async (_, text, errorClass) => {
  await expect(readText(text)).rejects.toMatchObject({ class: errorClass, retryable: true })
})

test('a finished answer without a word is an empty one', async () => {
  expect((await readText(streamOf(deltas([{ content: '' }], 'stop')))).answer).toMatchObject({
    text: '',
    finish: 'stop',
  })
})

describe('in a prompt', () => {
  let provider: FakeProvider
  beforeEach(async () => {
    provider = await startFakeProvider()
  })
  afterEach(() => provider.close())

  async function prompt(): Promise<{ reason: string; text: string }> {
    const model = createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'm', inContainer: false })
    const retry = { attempts: 3, baseMs: 1, capMs: 1, longestWaitMs: 50 }
    const running = runAgent({ model, tools: [], log: memoryLog(), retry, prompt: 'go' })
    for (;;) {
      const step = await running.next()
      if (step.done === true) return step.value
    }
  }

  test.each(SHAPES)('%s is asked again as it was', async (_, text) => {
    provider.add(stream(text), textAnswer('Here it is.'))
    expect(await prompt()).toMatchObject({ reason: 'completed', text: 'Here it is.' })
    expect(provider.requests[1]?.raw).toBe(provider.requests[0]?.raw)
  })

  test.each(SHAPES)('%s that lasts ends the prompt as an error', async (_, text) => {
    provider.add(stream(text), stream(text), stream(text))
    expect(await prompt()).toMatchObject({ reason: 'error' })
    // The third may ask for a whole answer, whose error may say more.
    expect(new Set(provider.requests.map(({ body }) => JSON.stringify(body.messages))).size).toBe(1)
  })
})

describe('silence, with limits of 10 s', () => {
  afterEach(() => void vi.useRealTimers())

  const silentAfter = async (text: string, ms: number) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] })
    const connection = new AbortController()
    const { promise, resolve } = Promise.withResolvers<unknown>()
    connection.signal.addEventListener('abort', () => resolve(connection.signal.reason))
    const body = (onBytes: (bytes: Uint8Array) => boolean): Promise<unknown> => {
      onBytes(Buffer.from(text))
      return promise
    }
    const reader = new BodyReader(body, connection, { idleMs: 10_000, progressMs: 10_000 })
    let outcome: unknown
    void readAnswer(
      reader,
      CONTEXT,
      chatWire.reader(() => undefined, DEFAULT_PROFILE),
    ).then(
      (answer) => (outcome = answer.text),
      (error: unknown) => (outcome = error),
    )
    await vi.advanceTimersByTimeAsync(ms - 10)
    const before = outcome
    await vi.advanceTimersByTimeAsync(20)
    return { before, outcome }
  }

  test.each([
    [
      'an answer that has ended is whole after 5 s',
      streamOf(deltas([{ content: 'ab' }], 'stop'), false),
      5_000,
      'ab',
    ],
    [
      'any other is late after 10 s',
      streamOf(deltas([{ content: 'ab' }], null), false),
      10_000,
      { class: 'timeout' },
    ],
  ])('%s', async (_, text, ms, expected) => {
    const { before, outcome } = await silentAfter(text, ms)
    expect(before).toBeUndefined()
    expect([outcome]).toMatchObject([expected])
  })
})
