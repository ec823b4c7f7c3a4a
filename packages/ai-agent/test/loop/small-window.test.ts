/** Models that hold less than they are taken for: it is known, learnt or found out, and the chat goes on. */
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { checkWindow, modelInChat } from '../../src/loop/learn-window.ts'
import { createHttpModel, type HttpModelOptions } from '../../src/model/http-model.ts'
import type { Model, ModelImage } from '../../src/model/model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { plainTool } from '../../src/plain/plain-tool.ts'
import { type RunOptions, type RunResult, runAgent } from '../../src/plain/run-agent.ts'
import {
  type FakeAnswer,
  type FakeProvider,
  type FakeUsage,
  type RecordedRequest,
  errorAnswer,
  startFakeProvider,
  textAnswer,
} from '../support/fake-provider.ts'
import { AgentBench, type Core, ask, happened as happenedIn, newSession } from '../support/agent-fixture.ts'
import { SUMMARY_REQUEST } from '../support/summary-request.ts'

const WINDOW = 4_096
/** About 900 tokens, as those of the product. */
const SYSTEM = `The instructions of this test. ${'Do this well, and that too. '.repeat(130)}`
/** Together 3,500 tokens, as those of the product. */
const TOOLS = Array.from({ length: 12 }, (_, n) =>
  plainTool({
    name: `tool_${n}`,
    description: `Does the thing ${n}. ${'It has a long description. '.repeat(18)}`,
    parameters: {
      type: 'object',
      properties: { text: { type: 'string', description: 'A text. '.repeat(60) } },
    },
    execute: () => 'done',
  }),
)
/** The count of a real tokenizer for English, tools included. */
const tokensOf = ({ body }: RecordedRequest): number =>
  Math.ceil((JSON.stringify(body.messages).length + JSON.stringify(body.tools ?? []).length) / 4.2)
const isOver = (request: RecordedRequest): boolean => tokensOf(request) > WINDOW
const isSummary = ({ body }: RecordedRequest): boolean => body.messages.at(-1)?.content === SUMMARY_REQUEST
const answerTo = (request: RecordedRequest, usage?: FakeUsage | null): FakeAnswer => {
  const text = isSummary(request) ? 'They said many things.' : 'Yes.'
  if (request.body.stream === false) {
    const message = { role: 'assistant', content: text }
    return errorAnswer(200, { choices: [{ index: 0, message, finish_reason: 'stop' }] })
  }
  return textAnswer(text, {
    usage: usage === undefined ? { prompt_tokens: tokensOf(request), completion_tokens: 6 } : usage,
  })
}
const TOO_LONG = {
  message: `This model's maximum context length is ${WINDOW} tokens. However, your messages resulted in 9123 tokens.`,
  type: 'invalid_request_error',
  code: 'context_length_exceeded',
}

let provider: FakeProvider
let log = memoryLog()
let model: Model
const warned: Record<string, unknown>[] = []
const warnings = {
  info: () => undefined,
  warn: (fields: Record<string, unknown>) => void warned.push(fields),
}
beforeEach(async () => {
  provider = await startFakeProvider()
  log = memoryLog()
  model = open()
  warned.length = 0
})
afterEach(() => provider.close())

const HTTP = { apiKey: 'sk-test', model: 'local', inContainer: false }

function open(options: Partial<HttpModelOptions> = {}): Model {
  return createHttpModel({ ...HTTP, baseUrl: provider.baseUrl, ...options })
}

let serving: (request: RecordedRequest) => FakeAnswer
/** From here on the provider answers each request so. */
function serve(answer: typeof serving): void {
  serving = answer
  provider.add(...Array.from({ length: 60 }, () => (request: RecordedRequest) => serving(request)))
}

async function say(prompt: RunOptions['prompt'], tools = TOOLS): Promise<RunResult> {
  const retry = { attempts: 4, baseMs: 1, capMs: 1, longestWaitMs: 50 }
  const run = runAgent({ model, tools, system: SYSTEM, log, retry, prompt, warnings })
  for (;;) {
    const step = await run.next()
    if (step.done === true) return step.value
  }
}

async function happened<T extends string>(
  type: T,
): Promise<Extract<ReturnType<typeof sandlotEventOf>, { type: T }>[]> {
  const events = (await log.read()).map(sandlotEventOf)
  return events.filter((event) => event?.type === type) as never
}

const long = (n: number): string => `${n}: ${'what I have to say of this, in many words, '.repeat(93)}`

describe('silent-window: the server keeps the end of a longer request', () => {
  const cutting = (request: RecordedRequest): FakeAnswer =>
    answerTo(request, { prompt_tokens: Math.min(WINDOW, tokensOf(request)), completion_tokens: 6 })

  test('without a word about it: the third request has learnt it, and fits; one note says so', async () => {
    serve(cutting)
    for (let n = 1; n <= 6; n++) await say(long(n))
    const [first, second, ...rest] = provider.requests
    expect([first, second].map((one) => one !== undefined && isOver(one))).toEqual([true, true])
    for (const request of rest) expect(tokensOf(request)).toBeLessThanOrEqual(WINDOW)
    expect(rest[0]?.body.messages[0]?.content).toBe(SYSTEM)
    expect(await happened('window_learnt')).toEqual([
      { type: 'window_learnt', model: 'local', tokens: WINDOW, why: 'counted' },
    ])
    expect((await happened('compacted')).some(({ summary }) => summary !== '')).toBe(true)
    const usage = (await log.read()).findLast(({ sessionUpdate }) => sessionUpdate === 'usage_update')
    expect(usage).toMatchObject({ size: WINDOW, _meta: { sandlot: { windowFrom: 'learnt' } } })
    expect(warned).toMatchObject([{ tokens: WINDOW, advice: expect.stringContaining('--max-model-len') }])
  })

  test('with max_model_len: the first request fits', async () => {
    provider.pages.set('/v1/models', { data: [{ id: 'local', max_model_len: WINDOW }] })
    serve(cutting)
    for (let n = 1; n <= 6; n++) await say(long(n))
    for (const request of provider.requests) expect(tokensOf(request)).toBeLessThanOrEqual(WINDOW)
    expect(model.window).toMatchObject({ tokens: WINDOW, from: 'server' })
    expect(await happened('window_learnt')).toEqual([])
  })
})

describe('overflow-cut-stream: the head of an answer, and then nothing', () => {
  const cut = (request: RecordedRequest): FakeAnswer => {
    if (!isOver(request)) return answerTo(request, null)
    return request.body.stream === false
      ? errorAnswer(400, { error: TOO_LONG })
      : { steps: [], after: 'destroy' }
  }

  test('is asked once without streaming; that error is the error, and the next message works', async () => {
    serve(cut)
    const result = await say('many words. '.repeat(2_250))
    expect(result).toMatchObject({ reason: 'error' })
    expect(result.text).toContain(`maximum context length is ${WINDOW} tokens`)
    expect(provider.requests.map(({ body }) => body.stream)).toEqual([true, true, false])
    expect(await say('And now?')).toMatchObject({ reason: 'completed', text: 'Yes.' })
    expect(await happened('window_learnt')).toMatchObject([{ tokens: WINDOW, why: 'refused' }])
  })

  test('a conversation that outgrows it is compacted and goes on', async () => {
    serve(cut)
    for (let n = 1; n <= 6; n++) expect(await say(long(n), [])).toMatchObject({ reason: 'completed' })
    expect((await happened('compacted')).length).toBeGreaterThan(0)
  })

  test('a connection that only breaks sometimes is asked for a stream again', async () => {
    const broken: FakeAnswer = { steps: [], after: 'destroy' }
    const half: FakeAnswer = errorAnswer(502, 'bad gateway')
    provider.add(broken, broken, half, (request) => answerTo(request))
    expect(await say('Hi')).toMatchObject({ reason: 'completed' })
    expect(provider.requests.map(({ body }) => body.stream)).toEqual([true, true, false, true])
  })
})

describe('overflow-empty-answer: nothing, and it is finished', () => {
  test('with and without streaming: a sentence names the length, and the next message works', async () => {
    serve((request) => {
      if (!isOver(request)) return answerTo(request, null)
      const message = { role: 'assistant', content: '' }
      if (request.body.stream === false)
        return errorAnswer(200, { choices: [{ index: 0, message, finish_reason: 'stop' }] })
      return textAnswer('', { usage: null })
    })
    const result = await say('many words. '.repeat(2_250), [])
    expect(result.text).toContain('longer than the model can hold')
    expect(await say('And now?', [])).toMatchObject({ reason: 'completed', text: 'Yes.' })
  })

  test('where the whole answer is an error, that is the error', async () => {
    serve((request) => {
      if (!isOver(request)) return answerTo(request, null)
      return request.body.stream === false
        ? errorAnswer(400, { error: TOO_LONG })
        : textAnswer('', { usage: null })
    })
    expect((await say('many words. '.repeat(2_250))).text).toContain(`${WINDOW} tokens`)
    expect(await say('And now?')).toMatchObject({ reason: 'completed', text: 'Yes.' })
  })
})

describe('a small window', () => {
  test('gets fewer and shorter tools, the same in every request', async () => {
    model = open({ contextWindow: WINDOW })
    serve((request) => answerTo(request))
    for (let n = 1; n <= 3; n++) await say(`Message ${n}`)
    const sent = provider.requests.map(({ body }) => JSON.stringify(body.tools))
    expect(new Set(sent).size).toBe(1)
    expect(sent[0]).toContain('"description":"Does the thing 0."')
    expect(sent[0]).not.toContain('A text. ')
    expect(sent[0]).toContain('"text"')
    model = open({ contextWindow: 2_048 })
    await say('And less?')
    const fewer = provider.requests.at(-1)?.body.tools?.length ?? 0
    expect(fewer).toBeLessThan(TOOLS.length)
    model = open({ contextWindow: 32_000 })
    await say('And more?')
    expect(provider.requests.at(-1)?.body.tools).toHaveLength(TOOLS.length)
    expect(JSON.stringify(provider.requests.at(-1)?.body.tools)).toContain('A text. ')
  })

  test('that the instructions alone fill is a sentence at the first message', async () => {
    model = open({ contextWindow: 1_200 })
    const result = await say('Hi')
    expect(result).toMatchObject({ reason: 'error' })
    expect(result.text).toMatch(/1,200 tokens\) is too small for the instructions.* ask your administrator/)
    expect(warned).toMatchObject([{ tokens: 1_200, advice: expect.stringContaining('--max-model-len') }])
    expect(provider.requests).toEqual([])
  })

  test('that the instructions fill has no summary made first, also where a refusal names it', async () => {
    model = open({ contextWindow: 32_000 })
    serve((request) => answerTo(request))
    for (let n = 1; n <= 4; n++) await say(long(n).slice(0, 1_000), [])
    model = open({ contextWindow: 1_200 })
    expect((await say('And now?', [])).text).toContain('too small for the instructions')
    expect(provider.requests).toHaveLength(4)
    model = open({ contextWindow: 32_000 })
    const message = "This model's maximum context length is 1200 tokens."
    serving = () => errorAnswer(400, { error: { ...TOO_LONG, message } })
    expect((await say('And now?', [])).text).toContain('too small for the instructions')
    expect(provider.requests).toHaveLength(5)
    expect(await happened('compacted')).toEqual([])
  })

  describe('with standing instructions', () => {
    function coreOf(bench: AgentBench, words: string, contextWindow: number): Promise<Core> {
      model = createHttpModel({ ...HTTP, baseUrl: bench.provider.baseUrl, contextWindow })
      const text = `From AGENTS.md in the workspace:\n\n${words}`
      return bench.core({ tools: TOOLS, parts: { model, instructions: async () => ({ text }) } })
    }

    test('that fill it: a sentence, and no request, also for /compact', async () => {
      await using bench = await AgentBench.start()
      const session = await newSession(await coreOf(bench, 'Use tabs here. '.repeat(1_000), WINDOW))
      for (const words of ['Hi', 'Hi again', '/compact']) await ask(session, words)
      expect(happenedIn(session.log, 'prompt_ended').map(({ text }) => text)).toEqual(
        Array.from({ length: 3 }, () => expect.stringContaining('too small for the instructions') as string),
      )
      expect(bench.provider.requests).toEqual([])
    })

    test('that take half of it: tools and summaries are made smaller for them', async () => {
      await using bench = await AgentBench.start()
      bench.provider.add(...Array.from({ length: 30 }, () => (request: RecordedRequest) => answerTo(request)))
      const words = 'Use tabs here. '.repeat(480)
      const before = await coreOf(bench, words, 32_000)
      const session = await newSession(before)
      for (let n = 1; n <= 12; n++) await ask(session, long(n).slice(0, 1_000))
      await before.leave()
      const { manager } = await coreOf(bench, words, WINDOW)
      await ask(await manager.get('u_ada', session.id), 'And now?')
      const [summary, next] = bench.provider.requests.slice(12)
      for (const request of [summary, next]) {
        expect(request && tokensOf(request)).toBeLessThanOrEqual(WINDOW * 0.9)
        expect(request?.body.tools ?? []).toEqual([])
      }
      expect(summary && isSummary(summary)).toBe(true)
    })
  })
})

describe('counts of a provider', () => {
  /** Windows learnt in a chat whose requests are counted like this. */
  async function learnt(
    count: (tokens: number, nth: number) => number,
    more: (tokens: number, nth: number) => FakeUsage = () => ({}),
    images: readonly ModelImage[] = [],
  ): Promise<number[]> {
    model = open({ contextWindow: 1_000_000 })
    log = memoryLog()
    let nth = 0
    serve((request) => {
      const tokens = tokensOf(request)
      const usage = { prompt_tokens: Math.round(count(tokens, nth)), ...more(tokens, nth++) }
      return answerTo(request, usage)
    })
    const text = images.length > 0 ? 'And this?' : 'some words '.repeat(300)
    for (let n = 1; n <= 6; n++) await say({ text: `${n} ${text}`, images }, [])
    return (await happened('window_learnt')).map(({ tokens }) => tokens)
  }

  test('that grow say nothing, at any rate', async () => {
    for (const rate of [0.8, 1, 2]) expect(await learnt((all) => all * rate)).toEqual([])
  })

  test('that fall once, leave out what was cached, or are always the same say nothing', async () => {
    expect(await learnt((all, nth) => (nth < 2 ? all * 3 : all + 2_500))).toEqual([])
    expect(await learnt((_, nth) => (nth === 0 ? 6_000 : 2_500))).toEqual([])
    expect(await learnt(() => 1_500)).toEqual([])
  })

  test('that stay below a limit, whole messages at a time, say it', async () => {
    expect(await learnt((all, nth) => (all < 2_500 ? all : 2_500 - nth))).toEqual([2_498])
  })

  test('of small images, and without what was cached, say nothing', async () => {
    const icon = { mimeType: 'image/png', data: 'iVBORw0KGgo=' }
    expect(await learnt((all) => 3_000 + all, undefined, [icon])).toEqual([])
    const cached = (_: number, nth: number): FakeUsage => ({
      prompt_tokens_details: { cached_tokens: 2_500 * nth },
    })
    expect(await learnt(() => 2_500, cached)).toEqual([])
  })

  test('say it for this chat alone where the window is set', async () => {
    expect(await learnt((all) => Math.min(all, 2_500))).toEqual([2_500])
    expect(model.window).toMatchObject({ tokens: 1_000_000, from: 'set' })
    const sizeOf = async () =>
      (await log.read()).findLast(({ sessionUpdate }) => sessionUpdate === 'usage_update')
    expect(await sizeOf()).toMatchObject({ size: 2_500, _meta: { sandlot: { windowFrom: 'learnt' } } })
    expect(provider.requests.slice(-2).map((one) => tokensOf(one) <= 2_500)).toEqual([true, true])
    let wire = 'chat'
    const changing: Model = {
      ...model,
      get wire() {
        return wire
      },
    }
    const inChat = modelInChat(changing, await log.read())
    wire = 'responses'
    expect([inChat.wire, inChat.window.tokens]).toEqual(['responses', 2_500])
    log = memoryLog()
    await say('Another chat', [])
    expect(await sizeOf()).toMatchObject({ size: 1_000_000, _meta: { sandlot: { windowFrom: 'set' } } })
  })

  test('that grow are checked without reading the whole log', async () => {
    await learnt((all) => all)
    const events = [...(await log.read())]
    let read = 0
    events.slice = (start = 0, end = events.length) => {
      read += end - start
      return events.filter((_, at) => at >= start && at < end)
    }
    const ctx = { log: () => events, system: SYSTEM, promptId: 'p', now: Date.now, warn: () => undefined }
    expect(await Array.fromAsync(checkWindow(ctx, 1, model))).toEqual([])
    expect(read).toBeGreaterThan(0)
    expect(read).toBeLessThan(events.length / 4)
  })
})

test('a summary is asked for with what fits, and with the beginning of a message that is too long', async () => {
  model = open({ contextWindow: WINDOW })
  serve((request) => answerTo(request))
  await say(`The beginning. ${long(1)}${long(2)}`)
  await say(long(3))
  const summaries = provider.requests.filter(isSummary)
  expect(summaries).not.toEqual([])
  for (const request of summaries) expect(tokensOf(request)).toBeLessThanOrEqual(WINDOW)
  expect(summaries[0]?.raw).toContain('The beginning.')
})

test('a summary of many messages is asked for with room for instructions and tools', async () => {
  model = open({ contextWindow: 32_000 })
  serve((request) => answerTo(request))
  for (let n = 1; n <= 12; n++) await say(long(n).slice(0, 1_000))
  model = open({ contextWindow: WINDOW })
  await say('And now?')
  // A tenth is left for the summary.
  expect(provider.requests.filter(isSummary).map((one) => tokensOf(one) <= WINDOW * 0.9)).toEqual([true])
})
