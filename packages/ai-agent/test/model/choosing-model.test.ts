/** A model that finds its API, against a real HTTP server that has more than one. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { WireName } from '@sandlot/shared/account/models-api'
import { createChoosingModel } from '../../src/model/choosing-model.ts'
import type { SetIn } from '@sandlot/shared/chat/reasons'
import type { HttpModelOptions } from '../../src/model/http-model.ts'
import { type Model, type ModelRequest, askedBy } from '../../src/model/model.ts'
import {
  type FakeAnswer,
  type FakeProvider,
  errorAnswer,
  startFakeProvider,
  textAnswer,
} from '../support/fake-provider.ts'
import { WIRE_ANSWERS } from '../support/wire-answers.ts'

const HI: ModelRequest = { messages: [{ role: 'user', content: 'hi' }] }

/** The refusal of a model that only the Responses API has. */
const ELSEWHERE = errorAnswer(404, {
  error: { message: 'This model is only supported in v1/responses and not in v1/chat/completions.' },
})
const responsesAnswer = (text: string): FakeAnswer => ({
  steps: WIRE_ANSWERS.responses.events({ text }),
})

let provider: FakeProvider
let switches: [WireName, WireName][]
beforeEach(async () => {
  switches = []
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

const model = (options: Partial<HttpModelOptions> = {}, setIn?: SetIn): Model =>
  createChoosingModel(
    { baseUrl: provider.baseUrl, apiKey: '', model: 'm', inContainer: false, ...options },
    (from, to) => switches.push([from, to]),
    setIn,
  )
const say = async (asked: Model, request = HI): Promise<string> => {
  let shown = ''
  const answer = await asked.stream(request, new AbortController().signal, (piece) => {
    if (piece.type === 'text') shown += piece.text
  })
  expect(shown).toBe(answer.text)
  return answer.text
}
const paths = (): string[] => provider.requests.map(({ path }) => path.replace('/v1/', ''))

describe('a model that lives on another API', () => {
  test('is asked there at once, and from then on; the switch is reported once', async () => {
    provider.add(ELSEWHERE, responsesAnswer('a'), responsesAnswer('b'))
    const asked = model()
    const measured = askedBy(asked, (...all) => asked.stream(...all))
    expect(measured.wire).toBe('chat')
    expect(await say(asked)).toBe('a')
    // Wrappers tell the wire of now, with which the history decides on what goes back.
    expect([asked.wire, measured.wire]).toEqual(['responses', 'responses'])
    expect(await say(asked)).toBe('b')
    expect(paths()).toEqual(['chat/completions', 'responses', 'responses'])
    expect(switches).toEqual([['chat', 'responses']])
  })

  test('is asked without what only the other API understands', async () => {
    provider.add(ELSEWHERE, responsesAnswer('a'))
    const raw = { reasoning_content: 'CANARY' }
    const call = { id: 'call_1', name: 'echo', args: {}, replay: { extra_content: 'CANARY' } }
    const messages: ModelRequest['messages'] = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: '', calls: [call], replay: [{ raw }] },
      { role: 'tool', callId: 'call_1', content: 'hi' },
    ]
    await say(model(), { messages })
    expect(provider.requests.map(({ raw: sent }) => sent.includes('CANARY'))).toEqual([true, false])
  })

  test('prompts at the same time switch it once', async () => {
    provider.add(ELSEWHERE, ELSEWHERE, responsesAnswer('a'), responsesAnswer('a'))
    const asked = model()
    expect(await Promise.all([say(asked), say(asked)])).toEqual(['a', 'a'])
    expect(switches).toHaveLength(1)
  })

  test('at a level of thought it is switched too, for all levels', async () => {
    provider.add(ELSEWHERE, responsesAnswer('a'), responsesAnswer('b'))
    const asked = model({ profile: { thoughtLevels: ['low'] } })
    const low = asked.atLevel?.('low') ?? asked
    await say(low)
    await say(asked)
    expect([low.wire, asked.wire, ...paths()]).toEqual([
      'responses',
      'responses',
      'chat/completions',
      'responses',
      'responses',
    ])
  })
})

describe('a switch that fails', () => {
  test('is put back, and the error tells both refusals and where the API is chosen', async () => {
    const wrong = errorAnswer(400, { error: { message: 'Model m is not for you.' } })
    provider.add(ELSEWHERE, wrong, ELSEWHERE, wrong)
    for (const [setIn, place] of [
      ['page', 'under Settings → Models'],
      ['configuration', 'in the configuration'],
    ] as const) {
      const asked = model({}, setIn)
      await expect(say(asked)).rejects.toMatchObject({
        class: 'invalid_request',
        retryable: false,
        message: expect.stringMatching(
          new RegExp(
            `Chat Completions \\(404\\): .*only supported.*Responses \\(400\\): Model m is not .*${place}`,
          ),
        ),
      })
      expect(asked.wire).toBe('chat')
    }
    expect(paths()).toEqual(['chat/completions', 'responses', 'chat/completions', 'responses'])
    expect(switches).toEqual([])
  })

  test('for want of both paths is the first failure, whose advice is the address', async () => {
    const missing = (path: string): FakeAnswer =>
      errorAnswer(404, { error: { message: `Invalid URL (POST ${path})` } })
    provider.add(missing('/responses'), missing('/chat/completions'))
    const asked = model({ wire: 'responses' }, 'page')
    await expect(say(asked)).rejects.toThrow(
      /doesn’t know the model .*: Invalid URL \(POST \/responses\)\. .* Check its address .* under Settings → Models\.$/,
    )
    expect(paths()).toEqual(['responses', 'chat/completions'])
  })

  test('for a reason that passes is that failure alone, and is tried again with the next request', async () => {
    const busy = errorAnswer(429, { error: { message: 'Slow down.' } })
    provider.add(ELSEWHERE, busy, ELSEWHERE, responsesAnswer('a'))
    const asked = model()
    await expect(say(asked)).rejects.toMatchObject({ class: 'rate_limit', retryable: true })
    expect(asked.wire).toBe('chat')
    expect(await say(asked)).toBe('a')
  })

  test('never leads to a third request', async () => {
    const there = errorAnswer(400, { error: { message: 'Please use /v1/chat/completions instead.' } })
    provider.add(ELSEWHERE, there)
    await expect(say(model())).rejects.toThrow('over both APIs')
    expect(provider.requests).toHaveLength(2)
  })

  test('a stop during it is the stop', async () => {
    const controller = new AbortController()
    provider.add(ELSEWHERE, () => {
      controller.abort(new Error('stopped'))
      return { steps: [], after: 'hang' }
    })
    await expect(model().stream(HI, controller.signal, () => undefined)).rejects.toThrow('stopped')
  })
})

test('another failure is not a reason, nor one after the answer has begun', async () => {
  const words = 'This model is only supported in v1/responses and not in v1/chat/completions.'
  const begun = textAnswer('begun').steps.slice(0, 2)
  provider.add(errorAnswer(400, { error: { message: 'bad' } }), {
    steps: [...begun, `data: ${JSON.stringify({ error: { message: words } })}\n\n`],
  })
  const asked = model()
  await expect(say(asked)).rejects.toThrow('bad')
  await expect(say(asked)).rejects.toThrow('only supported')
  expect(paths()).toEqual(['chat/completions', 'chat/completions'])
})

test.each<WireName>(['chat', 'responses', 'anthropic'])(
  'the address of an endpoint of the page is corrected in the page: %s',
  async (wire) => {
    const inPage = /^(?!.*OPENAI).*its address under Settings → Models/
    for (const body of [{ hello: 'world' }, '<!DOCTYPE html><html></html>']) {
      provider.add(errorAnswer(200, body))
      await expect(say(model({ wire }, 'page'))).rejects.toThrow(inPage)
    }
    await provider.close()
    const baseUrl = provider.baseUrl.replace('127.0.0.1', 'localhost')
    await expect(say(model({ wire, baseUrl, inContainer: true }, 'page'))).rejects.toThrow(inPage)
  },
)

test('an address of Anthropic is first asked over its own API', async () => {
  provider.add(
    errorAnswer(404, { type: 'error', error: { type: 'not_found_error', message: 'Not Found' } }),
    textAnswer('a'),
  )
  const asked = model({ baseUrl: provider.baseUrl.replace('/v1', '/anthropic') })
  expect(asked.wire).toBe('anthropic')
  expect(await say(asked)).toBe('a')
  expect(asked.wire).toBe('chat')
  expect(provider.requests.map(({ path }) => path)[1]).toBe('/anthropic/chat/completions')
})

test('without streaming it asks for a whole answer over each API', async () => {
  const whole = errorAnswer(200, WIRE_ANSWERS.responses.whole({ text: 'a' }))
  provider.add(ELSEWHERE, whole)
  const answer = await model({ streaming: false }).stream(HI, new AbortController().signal, () => undefined)
  expect(answer.text).toBe('a')
  expect(provider.requests.map(({ body }) => body.stream ?? false)).toEqual([false, false])
})
