/** Wires against LiteLLM, a server by others, in front of the scripted provider. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createHttpModel } from '../../src/model/http-model.ts'
import type { ModelAnswer, ModelMessage, ModelRequest } from '../../src/model/model.ts'
import {
  type FakeProvider,
  errorAnswer,
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../support/fake-provider.ts'
import { LITELLM, type LiteLlm, startLiteLlm } from './litellm.ts'
import { peerMissing } from '../../../../test/peer-cache.ts'

const missing = peerMissing(LITELLM)

describe.skipIf(missing !== undefined)(`LiteLLM${missing === undefined ? '' : ` (${missing})`}`, () => {
  const provider = { now: undefined as FakeProvider | undefined }
  let proxy: LiteLlm
  beforeAll(async () => {
    provider.now = await startFakeProvider()
    proxy = await startLiteLlm(provider.now.baseUrl)
  })
  afterAll(async () => {
    await proxy.close()
    await provider.now?.close()
  })

  const HI: ModelMessage = { role: 'user', content: 'Hi' }
  const tools = [
    {
      name: 'read',
      description: 'Read a file.',
      parameters: { type: 'object', properties: { path: { type: 'string' } } },
    },
  ]
  const never = new AbortController().signal

  describe('Responses', () => {
    const ask = (request: ModelRequest, streaming = true, name = proxy.model): Promise<ModelAnswer> =>
      createHttpModel({
        baseUrl: proxy.baseUrl,
        wire: 'responses',
        apiKey: proxy.apiKey,
        model: name,
        streaming,
        profile: { thoughtLevels: ['low'] },
      }).stream(request, never, () => undefined)

    test.each([true, false])('thought, text and counts; streamed: %s', async (streaming) => {
      const usage = { prompt_tokens: 11, completion_tokens: 5, total_tokens: 16 }
      const whole = {
        choices: [
          {
            message: { role: 'assistant', content: 'Hello', reasoning_content: 'hm' },
            finish_reason: 'stop',
          },
        ],
        usage,
      }
      const headers = { 'content-type': 'application/json' }
      provider.now?.add(
        streaming
          ? textAnswer('Hello', { reasoning: 'hm', usage })
          : { headers, steps: [JSON.stringify(whole)] },
      )
      expect(
        await ask({ messages: [{ role: 'system', content: 'Be kind.' }, HI], tools }, streaming),
      ).toMatchObject({ thought: 'hm', text: 'Hello', finish: 'stop', usage: { input: 11, output: 5 } })
      expect(provider.now?.requests.at(-1)?.body.messages).toEqual([
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Hi' },
      ])
    })

    test('calls side by side, and their results', async () => {
      const calls = ['a', 'b'].map((path, place) => ({ id: `c${place}`, name: 'read', args: { path } }))
      provider.now?.add(toolCalls(calls, { text: 'I look.', reasoning: 'Two files.' }), textAnswer('Done.'))
      const { text, replay, ...first } = await ask({ messages: [HI], tools })
      expect({ text, ...first }).toMatchObject({
        thought: 'Two files.',
        text: 'I look.',
        calls,
        finish: 'tool_calls',
      })
      const results = calls.map(({ id }): ModelMessage => ({ role: 'tool', callId: id, content: `of ${id}` }))
      const said: ModelMessage = {
        role: 'assistant',
        content: text,
        calls: first.calls,
        ...(replay === undefined ? {} : { replay }),
      }
      expect(await ask({ messages: [HI, said, ...results], tools })).toMatchObject({ text: 'Done.' })
      const sent = provider.now?.requests.at(-1)?.body.messages ?? []
      expect(sent.filter(({ role }) => role !== 'assistant')).toMatchObject([
        { role: 'user', content: 'Hi' },
        { role: 'tool', tool_call_id: 'c0', content: 'of c0' },
        { role: 'tool', tool_call_id: 'c1', content: 'of c1' },
      ])
      expect(JSON.stringify(sent).match(/I look\./g)).toHaveLength(1)
    })

    test('what it refuses has its class', async () => {
      await expect(ask({ messages: [HI] }, true, 'nope')).rejects.toMatchObject({ class: 'invalid_request' })
      provider.now?.add(
        errorAnswer(429, { error: { message: 'Rate limit reached', type: 'rate_limit_error' } }),
      )
      await expect(ask({ messages: [HI] })).rejects.toMatchObject({ class: 'rate_limit', retryable: true })
    })

    test('an answer that its model cuts is cut', async () => {
      provider.now?.add(toolCalls([{ id: 'c', name: 'read', args: '{"path":"ha' }], { finish: 'length' }))
      expect(await ask({ messages: [HI], tools })).toMatchObject({
        calls: [{ name: 'read', invalid: 'truncated' }],
      })
    })
  })

  describe('Messages', () => {
    const ask = (request: ModelRequest, model = proxy.model): Promise<ModelAnswer> =>
      createHttpModel({ baseUrl: proxy.baseUrl, wire: 'anthropic', apiKey: proxy.apiKey, model }).stream(
        request,
        never,
        () => undefined,
      )

    test('thought, text and counts', async () => {
      const usage = { prompt_tokens: 11, completion_tokens: 5, total_tokens: 16 }
      provider.now?.add(textAnswer('Hello there', { reasoning: 'hm', usage }))
      expect(await ask({ messages: [{ role: 'system', content: 'Be kind.' }, HI], tools })).toMatchObject({
        thought: 'hm',
        text: 'Hello there',
        finish: 'stop',
        usage: { input: 11, output: 5 },
      })
      expect(provider.now?.requests.at(-1)?.body).toMatchObject({ tools: [{ function: { name: 'read' } }] })
    })

    test('calls side by side, and their results', async () => {
      const calls = ['a', 'b'].map((path, place) => ({ id: `c${place}`, name: 'read', args: { path } }))
      provider.now?.add(toolCalls(calls, { text: 'I look.', reasoning: 'Two files.' }), textAnswer('Done.'))
      const first = await ask({ messages: [HI], tools })
      expect(first).toMatchObject({ text: 'I look.', calls, finish: 'tool_calls' })
      const results = calls.map(({ id }): ModelMessage => ({ role: 'tool', callId: id, content: `of ${id}` }))
      const { replay } = first
      const said: ModelMessage = {
        role: 'assistant',
        content: first.text,
        calls: first.calls,
        ...(replay === undefined ? {} : { replay }),
      }
      expect(await ask({ messages: [HI, said, ...results], tools })).toMatchObject({ text: 'Done.' })
      const sent = provider.now?.requests.at(-1)?.body.messages ?? []
      expect(sent.filter(({ role }) => role === 'tool')).toMatchObject([
        { tool_call_id: 'c0', content: 'of c0' },
        { tool_call_id: 'c1', content: 'of c1' },
      ])
    })

    test('what it refuses has its class', async () => {
      await expect(ask({ messages: [HI] }, 'nope')).rejects.toMatchObject({
        class: 'invalid_request',
      })
      provider.now?.add(
        errorAnswer(429, { error: { message: 'Rate limit reached', type: 'rate_limit_error' } }),
      )
      await expect(ask({ messages: [HI] })).rejects.toMatchObject({ class: 'rate_limit', retryable: true })
    })

    test('an answer that its model cuts is cut', async () => {
      provider.now?.add(toolCalls([{ id: 'c', name: 'read', args: '{"path":"ha' }], { finish: 'length' }))
      expect(await ask({ messages: [HI], tools })).toMatchObject({
        finish: 'length',
        calls: [{ name: 'read', invalid: 'truncated' }],
      })
    })
  })
})
