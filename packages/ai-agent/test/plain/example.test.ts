/** The model client and the loop as plain functions: no Docker, no database, no session. Also an example of their use. */
import { type SessionEvent, isLive, sandlotEventOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { ModelError } from '../../src/model/model.ts'
import { createHttpModel } from '../../src/model/http-model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { plainTool } from '../../src/plain/plain-tool.ts'
import { type RunOptions, type RunResult, askOnce, runAgent } from '../../src/plain/run-agent.ts'
import { defineTool } from '../../src/tools/tool.ts'
import {
  deltaChunk,
  errorAnswer,
  sse,
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../support/fake-provider.ts'

const weather = plainTool({
  name: 'weather',
  description: 'The weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  readOnly: true,
  execute: ({ city }) => `It rains in ${String(city)}.`,
})
const asksWeather = toolCalls([{ id: 'c1', name: 'weather', args: { city: 'Bern' } }])

/** Run to the end; only the result counts. */
async function finish(options: RunOptions): Promise<RunResult> {
  const run = runAgent(options)
  let step = await run.next()
  while (step.done !== true) step = await run.next()
  return step.value
}

test('the loop: model, tools, a log and a prompt', async () => {
  const provider = await startFakeProvider([asksWeather, textAnswer('Take an umbrella.')])
  const model = createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'fake' })
  const log = memoryLog()
  const result = await finish({ model, tools: [weather], log, prompt: 'Do I need an umbrella in Bern?' })
  expect(result).toMatchObject({ reason: 'completed', text: 'Take an umbrella.' })
  expect(provider.requests[1]?.body.messages.at(-1)).toEqual({
    role: 'tool',
    tool_call_id: 'c1',
    content: 'It rains in Bern.',
  })
  expect((await log.read()).map(({ _meta }) => _meta.sandlot.seq)).toEqual(
    (await log.read()).map((_, place) => place + 1),
  )
  await provider.close()
})

test('the system prompt of a program is sent as it is, whatever its tools have to say', async () => {
  const provider = await startFakeProvider([textAnswer('Hello.')])
  const model = createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'fake' })
  const hinting = { ...weather, runs: { ...weather.runs, hint: 'Ask for the weather twice.' } }
  await finish({ model, tools: [hinting], log: memoryLog(), system: 'You are a clerk.', prompt: 'Hello' })
  const [system] = provider.requests[0]?.body.messages ?? []
  expect(system).toEqual({ role: 'system', content: 'You are a clerk.' })
  await provider.close()
})

test('thoughts that were shown as text, because their tag stood in the prompt, are settled as thoughts', async () => {
  const before = textAnswer('I need the weather.\n</think>\n\n')
  const provider = await startFakeProvider([
    { steps: [...before.steps.slice(0, -2), ...asksWeather.steps] },
    textAnswer('It rains, so\n</think>\n\nTake an umbrella.'),
  ])
  const model = createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'qwen3-thinking' })
  const log = memoryLog()
  const result = await finish({ model, tools: [weather], log, prompt: 'Bern?' })
  expect(result.text).toBe('Take an umbrella.')
  const said = (await log.read()).filter((event) => event.sessionUpdate.startsWith('agent_'))
  expect(said).toMatchObject([
    { sessionUpdate: 'agent_thought_chunk', content: { text: 'I need the weather.\n' } },
    { sessionUpdate: 'agent_message_chunk', content: { text: '' } },
    { sessionUpdate: 'agent_thought_chunk', content: { text: 'It rains, so\n' } },
    { sessionUpdate: 'agent_message_chunk', content: { text: 'Take an umbrella.' } },
  ])
  expect(JSON.stringify(provider.requests[1]?.body)).not.toContain('</think>')
  await provider.close()
})

test('an answer with its calls is one write, the last outcome with the turn’s end another', async () => {
  const calls = [
    { id: 'c1', name: 'weather', args: { city: 'Bern' } },
    { id: 'c2', name: 'weather', args: { city: 'Rome' } },
    { id: 'c3', name: 'wether', args: {} },
  ]
  const provider = await startFakeProvider([toolCalls(calls, { text: 'I look.' }), textAnswer('Rain.')])
  const model = createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'fake' })
  const log = memoryLog()
  const writes: string[][] = []
  const append: typeof log.append = (events, after) => {
    writes.push(events.map((event) => sandlotEventOf(event)?.type ?? event.sessionUpdate))
    return log.append(events, after)
  }
  await finish({ model, tools: [weather], log: { ...log, append }, prompt: 'Where is it dry?' })
  const turn = writes.filter((kinds) => kinds.some((kind) => /tool_call|turn_ended/.test(kind)))
  const answer = ['agent_message_chunk', 'usage_update', 'tool_call', 'tool_call', 'tool_call']
  expect(turn.at(0)).toEqual(answer)
  expect(turn.at(-1)).toEqual(['tool_call_update', 'turn_ended'])
  expect(turn.slice(1, -1)).toEqual(turn.slice(1, -1).map(() => ['tool_call_update']))
  const ended = (await log.read()).map(sandlotEventOf).filter((event) => event?.type === 'turn_ended')
  expect(ended).toEqual([{ type: 'turn_ended', callIds: ['c1', 'c2', 'c3'] }])
  await provider.close()
})

test('a turn whose end an older version did not store with its last outcome is ended first', async () => {
  const provider = await startFakeProvider([asksWeather, textAnswer('Rain.')])
  const model = createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'fake' })
  const run = runAgent({ model, tools: [weather], log: memoryLog(), prompt: 'Bern?' })
  const until: SessionEvent[] = []
  for await (const event of run) {
    if (sandlotEventOf(event)?.type === 'turn_ended') break
    if (!isLive(event)) until.push(event)
  }
  const log = memoryLog(until)
  expect(await finish({ model, tools: [weather], log })).toMatchObject({ reason: 'completed', text: 'Rain.' })
  const ended = (await log.read()).map(sandlotEventOf).filter((event) => event?.type === 'turn_ended')
  expect(ended).toEqual([{ type: 'turn_ended', callIds: ['c1'] }])
  await provider.close()
})

test('a consumer that goes away in the middle of a call: the call hears of it', async () => {
  const both = ['c1', 'c2'].map((id) => ({ id, name: 'weather', args: {} }))
  const provider = await startFakeProvider([toolCalls(both)])
  const model = createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'fake' })
  const begun = Promise.withResolvers<void>()
  const told = Promise.withResolvers<void>()
  const slow = plainTool({
    name: 'weather',
    description: 'Takes its time.',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
    readOnly: true,
    execute: (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          told.resolve()
          reject(new Error('over'))
        })
        begun.resolve()
      }),
  })
  for await (const event of runAgent({ model, tools: [slow], log: memoryLog(), prompt: 'Bern?' })) {
    // The second one: the first has been let run.
    if (event.sessionUpdate !== 'tool_call_update' || event.toolCallId !== 'c2') continue
    await begun.promise
    break
  }
  await told.promise
  await provider.close()
})

test('the client: one request gives the whole message, or a classified error', async () => {
  const provider = await startFakeProvider([
    textAnswer('Hello.'),
    errorAnswer(429, { error: { message: 'Rate limit reached' } }, { 'retry-after': '7' }),
  ])
  const options = {
    baseUrl: provider.baseUrl,
    apiKey: 'sk-x',
    model: 'fake',
    messages: [{ role: 'user' as const, content: 'Hi' }],
  }
  let said = ''
  const answer = await askOnce(options, undefined, (piece) => {
    if (piece.type === 'text') said += piece.text
  })
  expect(said).toBe('Hello.')
  expect(answer).toMatchObject({ text: 'Hello.', calls: [], finish: 'stop', usage: { input: 10 } })

  const error: unknown = await askOnce(options).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ModelError)
  expect(error).toMatchObject({ class: 'rate_limit', retryable: true, waitMs: 7_000 })
  await provider.close()
})

test('bug 23: images of results and of the user, from the log: all results, then one message of the user', async () => {
  const image = { mimeType: 'image/png', data: 'iVBORw0KGgo=' }
  const look = defineTool({
    name: 'look',
    description: 'Shows something.',
    kind: 'read',
    input: z.strictObject({}),
    readOnly: true,
    title: () => 'Look',
    // oxlint-disable-next-line require-yield
    async *execute() {
      const content = [{ type: 'content' as const, content: { type: 'image' as const, ...image } }]
      return { status: 'completed', forModel: 'A picture.', content }
    },
  })
  const twoLooks = toolCalls([
    { id: 'a', name: 'look', args: {} },
    { id: 'b', name: 'look', args: {} },
  ])
  const provider = await startFakeProvider([twoLooks, textAnswer('Nice.'), twoLooks, textAnswer('Nice.')])
  const about = { baseUrl: provider.baseUrl, apiKey: '', model: 'fake' }
  const prompt = { text: 'What is it?', images: [image] }
  const sees = createHttpModel(about)
  await finish({ model: sees, tools: [look], log: memoryLog(), system: 's', prompt })
  const messages = provider.requests[1]?.body.messages ?? []
  expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'tool', 'user'])
  expect(JSON.stringify(messages[1])).toContain('data:image/png;base64,iVBOR')
  expect(JSON.stringify(messages[5]).split('data:image/png')).toHaveLength(3)

  const blind = createHttpModel({ ...about, profile: { images: false } })
  await finish({ model: blind, tools: [look], log: memoryLog(), system: 's', prompt })
  const words = provider.requests[3]?.body.messages ?? []
  expect(words.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'tool'])
  expect(JSON.stringify(words)).not.toContain('base64')
  expect(words[3]?.content).toContain('image/png, 8 bytes')
  await provider.close()
})

test('reasoning is dropped on a change of model, which is recorded in the prompt; cost adds up over both', async () => {
  const thinks = {
    steps: [
      sse(deltaChunk({ reasoning_content: 'Hm.' })),
      sse(
        deltaChunk({
          tool_calls: [{ index: 0, id: 'c1', function: { name: 'weather', arguments: '{"city":"Bern"}' } }],
        }),
      ),
      sse(deltaChunk({}, 'tool_calls')),
      sse({ choices: [], usage: { prompt_tokens: 1_000_000, completion_tokens: 0 } }),
      sse('[DONE]'),
    ],
  }
  const first = await startFakeProvider([
    thinks,
    errorAnswer(402, { error: { message: 'insufficient_quota' } }),
  ])
  const second = await startFakeProvider([
    textAnswer('Yes.', { usage: { prompt_tokens: 500_000, completion_tokens: 0 } }),
  ])
  const about = { apiKey: '', price: { input: 2, output: 0 }, contextWindow: 4_000_000 }
  const log = memoryLog()
  await finish({
    model: createHttpModel({ ...about, baseUrl: first.baseUrl, model: 'fake' }),
    fallbacks: [createHttpModel({ ...about, baseUrl: second.baseUrl, model: 'other' })],
    tools: [weather],
    log,
    prompt: 'go',
  })
  expect(first.requests[1]?.raw).toContain('"reasoning_content":"Hm."')
  expect(second.requests[0]?.raw).not.toContain('Hm.')
  const events = await log.read()
  expect(events.map(sandlotEventOf)).toContainEqual({ type: 'model_changed', model: 'other', why: 'quota' })
  const costs = events.flatMap((event) => (event.sessionUpdate === 'usage_update' ? [event] : []))
  expect(costs.map(({ cost }) => cost?.amount)).toEqual([2, 3])
  expect(costs.map(({ _meta }) => [_meta.sandlot.model, _meta.sandlot.cost])).toEqual([
    ['fake', 2],
    ['other', 1],
  ])
  await Promise.all([first.close(), second.close()])
})
