/**
 * Parameters that an endpoint refuses, and the longest time of its answer, against a real HTTP
 * server.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { WIRE_ANSWERS } from '../support/wire-answers.ts'
import type { Model, ModelAnswer, ModelRequest } from '../../src/model/model.ts'
import { WIRES, createHttpModel, readAnswer } from '../../src/model/http-model.ts'
import type { ReadBody } from '../../src/model/http-post.ts'
import { DEFAULT_PROFILE } from '../../src/model/profiles.ts'
import { BodyReader } from '../../src/model/sse.ts'
import type { HttpModelOptions } from '../../src/model/http-model.ts'
import { errorAnswer, sse, startFakeProvider, textAnswer } from '../support/fake-provider.ts'
import type { FakeProvider, Step } from '../support/fake-provider.ts'

const HI: ModelRequest = { messages: [{ role: 'user', content: 'hi' }] }
const AFTER_CALL: ModelRequest = {
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: '', calls: [{ id: 'a', name: 'echo', args: {} }] },
    { role: 'tool', callId: 'a', content: 'hi' },
  ],
}

let provider: FakeProvider
beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

const model = (options: Partial<HttpModelOptions> = {}): Model =>
  createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'm', inContainer: false, ...options })

const ask = (request: ModelRequest, asked: Model): Promise<ModelAnswer> =>
  asked.stream(request, new AbortController().signal, () => undefined)
const refusal = (message: string) => errorAnswer(400, { error: { message } })
const sent = (name: string): unknown[] => provider.requests.map((request) => request.body[name])

describe('null beside calls', () => {
  const contents = (): unknown[] => provider.requests.map((request) => request.body.messages[1]?.['content'])

  test.each([
    "Bad input: Error: Type mismatch of '/messages/1/content', 'string' not in 'null'",
    '[{"type":"string_type","loc":["body","messages",1,"content"],"msg":"Input should be a valid string"}]',
    'messages[1].content: invalid type: null, expected a string',
  ])('an endpoint that refuses it gets an empty text from then on: %s', async (words) => {
    provider.add(refusal(words), textAnswer('a'), textAnswer('b'))
    const asked = model()
    expect((await ask(AFTER_CALL, asked)).text).toBe('a')
    expect((await ask(AFTER_CALL, asked)).text).toBe('b')
    expect(contents()).toEqual([null, '', ''])
  })

  test('once: who refuses that too is not asked for ever', async () => {
    const words = 'messages[1].content must be a string'
    provider.add(refusal(words), refusal(words))
    await expect(ask(AFTER_CALL, model())).rejects.toMatchObject({ class: 'invalid_request' })
    expect(provider.requests).toHaveLength(2)
  })

  test('what did not help is not kept: the next request is as it was', async () => {
    const words = 'tools[0]: content is no string'
    provider.add(refusal(words), refusal(words), textAnswer('b'))
    const asked = model()
    await expect(ask(AFTER_CALL, asked)).rejects.toMatchObject({ class: 'invalid_request' })
    expect((await ask(AFTER_CALL, asked)).text).toBe('b')
    expect(contents()).toEqual([null, '', null])
  })

  test('where no null was sent it is not the reason', async () => {
    provider.add(refusal('messages[0].content must be a string'))
    await expect(ask(HI, model())).rejects.toMatchObject({ class: 'invalid_request' })
    expect(provider.requests).toHaveLength(1)
  })
})

test('a refusal that quotes the request says nothing of its members, and usage is asked for again', async () => {
  const words = 'no such tool choice in {"stream_options":{"include_usage":true}}'
  provider.add(refusal(words), refusal(words), textAnswer('b'))
  const asked = model()
  await expect(ask(HI, asked)).rejects.toMatchObject({ class: 'invalid_request' })
  expect((await ask(HI, asked)).text).toBe('b')
  const usage = { include_usage: true }
  expect(sent('stream_options')).toEqual([usage, undefined, usage])
})

describe('the limit of the answer', () => {
  const newer = { profile: { maxTokensName: 'max_completion_tokens' } } as const

  test('an endpoint that does not know the newer name gets the older one from then on', async () => {
    provider.add(
      refusal('Unrecognized request argument supplied: max_completion_tokens'),
      textAnswer('a'),
      textAnswer('b'),
    )
    const asked = model(newer)
    await ask({ ...HI, maxTokens: 9 }, asked)
    await ask({ ...HI, maxTokens: 9 }, asked)
    expect(sent('max_completion_tokens')).toEqual([9, undefined, undefined])
    expect(sent('max_tokens')).toEqual([undefined, 9, 9])
  })

  test('a value that is too large is no unknown name', async () => {
    provider.add(refusal('max_completion_tokens is too large: 9'))
    await expect(ask({ ...HI, maxTokens: 9 }, model(newer))).rejects.toMatchObject({
      class: 'invalid_request',
    })
    expect(provider.requests).toHaveLength(1)
  })

  test('one that refuses both is not asked for ever', async () => {
    const words = "Unsupported parameter, neither 'max_tokens' nor 'max_completion_tokens'"
    provider.add(refusal(words), refusal(words))
    await expect(ask({ ...HI, maxTokens: 9 }, model())).rejects.toMatchObject({ class: 'invalid_request' })
    expect(provider.requests).toHaveLength(2)
  })
})

describe('bug 18: what counts as progress', () => {
  const limits = { silence: { idleMs: 2_000, progressMs: 250 } }
  const every = (step: Step, times: number): Step[] =>
    Array.from({ length: times }, () => [step, { delayMs: 25 }]).flat()
  const whole = JSON.stringify({ choices: [{ message: { content: 'whole' }, finish_reason: 'stop' }] })

  test('an answer that is not streamed comes behind blanks, however long it takes', async () => {
    provider.add({ steps: [...every('\n', 20), whole] })
    expect((await ask(HI, model({ ...limits, streaming: false }))).text).toBe('whole')
  })

  test('a body under `stream: true` is data while it comes', async () => {
    // Longer than the limit in all, and each pause far below it.
    provider.add({ steps: Array.from(whole, (char) => [char, { delayMs: 50 }] satisfies Step[]).flat() })
    expect((await ask(HI, model({ ...limits, silence: { idleMs: 2_000, progressMs: 2_000 } }))).text).toBe(
      'whole',
    )
  })

  test.each([sse({ type: 'ping' }), sse({ id: 'x', choices: [] })])('%s does not', async (ping) => {
    provider.add({ steps: [...every(ping, 40), ...textAnswer('late').steps] })
    await expect(ask(HI, model(limits))).rejects.toMatchObject({
      class: 'timeout',
      message: expect.stringContaining('signs of life'),
    })
  })
})

test.each(['responses', 'anthropic'] as const)(
  'the last event of %s ends the answer, also where the connection stays open',
  async (wire) => {
    const bytes = Buffer.from(WIRE_ANSWERS[wire].events({ text: 'whole' }).join(''))
    const read: ReadBody = (onBytes) =>
      onBytes(bytes) ? Promise.resolve(undefined) : Promise.reject(new Error('it waits for more'))
    const body = new BodyReader(read, new AbortController(), { idleMs: 60_000, progressMs: 60_000 })
    const reader = WIRES[wire].reader(() => undefined, DEFAULT_PROFILE)
    const answer = await readAnswer(body, { model: 'm', baseUrl: '', apiKey: '' }, reader)
    expect(answer).toMatchObject({ text: 'whole', finish: 'stop' })
  },
)

describe('limits of `fetch` itself', () => {
  const key = Symbol.for('undici.globalDispatcher.1')
  type Dispatch = (options: object, handler: unknown) => boolean
  type Dispatcher = { dispatch: Dispatch; compose: (wrap: (dispatch: Dispatch) => Dispatch) => Dispatcher }
  const before = Reflect.get(globalThis, key) as Dispatcher
  afterEach(() => void Reflect.set(globalThis, key, before))

  test('do not hold: the head and the middle may take as long as ours allow', async () => {
    const impatient = before.compose(
      (dispatch) => (options, handler) =>
        dispatch({ headersTimeout: 200, bodyTimeout: 200, ...options }, handler),
    )
    Reflect.set(globalThis, key, impatient)
    const [first, ...rest] = textAnswer('slow').steps
    provider.add(async () => {
      await sleep(1_500)
      return { steps: [first ?? '', { delayMs: 1_500 }, ...rest] }
    })
    expect((await ask(HI, model({ silence: { idleMs: 20_000 } }))).text).toBe('slow')
  })
})
