/** Endpoints of models that administrators add, in an agent with real rows and a real provider. */
import { mkdtempSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type AnyMessage, PROTOCOL_VERSION, client, methods } from '@agentclientprotocol/sdk'
import { EXT, type modelsParams } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import {
  type Endpoint,
  type EndpointRequest,
  endpointTestResult,
  joinedModelsView,
} from '@sandlot/shared/account/models-api'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { metaOf } from '@sandlot/shared/chat/events'
import { openSessionStore } from '@sandlot/storage/store/open'
import { openAgent } from '../../src/agent/agent.ts'
import { readAgentConfig } from '../../src/config/config.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import {
  type FakeAnswer,
  errorAnswer,
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../support/fake-provider.ts'
import { type NeutralAnswer, WIRE_ANSWERS } from '../support/wire-answers.ts'
import { fileFolder } from '../../../../test/folders.ts'
import { LOCAL_PROCESS } from '../../../../test/config.ts'

type ModelsAsk = z.infer<typeof modelsParams>['ask']

const folder = fileFolder('models')
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const ROOT: AgentUser = { id: 'root', role: 'admin', teams: [] }
const ADA: AgentUser = { id: 'ada', role: 'member', teams: [] }
const KEY = 'sk-of-the-endpoint-0123456789'

async function start(data: string, env: Record<string, string> = {}) {
  const config = readAgentConfig(
    builtinTools().map(({ name }) => name),
    { SANDLOT_DATA: data, ...LOCAL_PROCESS, ...env },
  )
  const lines: string[] = []
  const write = (fields: unknown, line: string): void => void lines.push(`${line} ${JSON.stringify(fields)}`)
  const agent = await openAgent(config, { info: write, warn: write })
  let left = false
  const leave = async (): Promise<void> => {
    if (!left) await agent.leave()
    left = true
  }
  closing.push(leave)
  const there = new TransformStream<AnyMessage, AnyMessage>()
  const back = new TransformStream<AnyMessage, AnyMessage>()
  agent.serve({ readable: there.readable, writable: back.writable })
  const { agent: asked } = client({ name: 'test' })
    .onNotification('*', () => undefined)
    .connect({ readable: back.readable, writable: there.writable })
  await asked.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { _meta: { sandlot: { version: 1 } } },
  })
  const ask = (what: ModelsAsk, user = ROOT) => asked.request(EXT.models, { user, ask: what })
  return {
    agent,
    lines,
    leave,
    asked,
    ask,
    view: async (what: ModelsAsk) => joinedModelsView.parse(await ask(what)),
    tried: async (what: Omit<Extract<ModelsAsk, { do: 'test' }>, 'do'>) =>
      endpointTestResult.parse(await ask({ ...what, do: 'test' })),
    says: async (text: string, model?: string) => {
      const { sessionId } = await asked.request(methods.agent.session.new, {
        cwd: '/workspace',
        mcpServers: [],
        _meta: { sandlot: { user: ADA, ...(model === undefined ? {} : { model }) } },
      })
      return asked.request(methods.agent.session.prompt, {
        sessionId,
        prompt: [{ type: 'text', text }],
        _meta: { sandlot: { user: ADA } },
      })
    },
  }
}
const newFolder = (): string => mkdtempSync(join(folder, 'data-'))

const endpointAt = (baseUrl: string, ...names: string[]): Endpoint => ({
  name: 'Ours',
  baseUrl,
  models: names.map((name) => ({ name, price: { input: 1, output: 2 } })),
})
const put = (endpoint: Endpoint, more: { id?: string; revision?: number; apiKey?: string | null } = {}) =>
  ({ ...endpoint, revision: 0, ...more, do: 'put' }) as const

/** The refusal of a model that only the Responses API has. */
const ELSEWHERE = errorAnswer(404, {
  error: { message: 'This model is only supported in v1/responses and not in v1/chat/completions.' },
})
const responsesAnswer = (text: string, calls?: NeutralAnswer['calls']): FakeAnswer => ({
  steps: WIRE_ANSWERS.responses.events({ text, calls }),
})

async function providerOf(...answers: FakeAnswer[]) {
  const provider = await startFakeProvider(answers)
  closing.push(() => provider.close())
  return provider
}

describe('an endpoint that is added', () => {
  test('a price that is entered is what answers cost from the next message on; what is past keeps its own', async () => {
    const prompt_tokens_details = { cache_write_tokens: 500_000 }
    const usage = { prompt_tokens: 1_000_000, completion_tokens: 500_000, prompt_tokens_details }
    const provider = await providerOf(...[1, 2, 3].map(() => textAnswer('hello', { usage })))
    const data = newFolder()
    const one = await start(data)
    const endpoint: Endpoint = { name: 'Ours', baseUrl: provider.baseUrl, models: [{ name: 'big' }] }
    const priced = (input: number): Endpoint => ({
      ...endpoint,
      models: [{ name: 'big', price: { input, output: 2, cacheWrite: 4 } }],
    })
    const [added] = (await one.view(put(endpoint))).endpoints
    await one.says('hi')
    await one.view(put(priced(1), { id: added?.id ?? '', revision: 1 }))
    await one.says('hi')
    const view = await one.view(put(priced(3), { id: added?.id ?? '', revision: 2 }))
    expect(view.knownPrices).toEqual({ big: { input: 3, output: 2 } })
    await one.says('hi')
    await one.leave()
    const store = await openSessionStore(join(data, 'sessions.db'))
    const sessions = await store.sessions.list(ADA.id, { limit: 10 })
    const costs: unknown[] = []
    for (const { id } of sessions.toSorted((a, b) => a.createdAt - b.createdAt))
      costs.push(
        (await store.log.read(id)).map((event) => metaOf(event).cost).find((cost) => cost !== undefined),
      )
    await store.close()
    expect(costs).toEqual([undefined, 3.5, 4.5])
  })

  test('answers from the next prompt on in place of the demo, with its key, also after a restart; the key is never shown', async () => {
    const provider = await providerOf(textAnswer('hello'), textAnswer('again'))
    const data = newFolder()
    const first = await start(data)
    expect(first.agent.model.demo).toBe(true)
    const view = await first.view(put(endpointAt(provider.baseUrl, 'big', 'small'), { apiKey: KEY }))
    expect(view).toMatchObject({
      configured: [],
      endpoints: [{ name: 'Ours', hasKey: true, revision: 1 }],
      main: { name: 'big', demo: false },
    })
    expect(JSON.stringify(view)).not.toContain(KEY)
    await first.says('hi', 'small')
    const { models, model } = await first.agent.status()
    expect([model.name, models?.map(({ name }) => name)]).toEqual(['big', ['big', 'small']])
    await first.leave()
    expect(first.lines.join()).not.toContain(KEY)
    expect(readFileSync(join(data, 'sessions.db')).includes(KEY)).toBe(false)

    const second = await start(data)
    await second.says('hi')
    expect(provider.requests.map(({ body, headers }) => [body.model, headers['authorization']])).toEqual([
      ['small', `Bearer ${KEY}`],
      ['big', `Bearer ${KEY}`],
    ])
    expect(second.agent.model.demo).toBe(false)
    const { endpoints } = await second.view({ do: 'list' })
    expect((await second.view({ do: 'remove', id: endpoints[0]?.id ?? '' })).main.demo).toBe(true)
  })

  test('comes after what is configured, which is shown and whose names are taken', async () => {
    const agent = await start(newFolder(), {
      OPENAI_MODEL: 'main',
      OPENAI_API_KEY: 'sk-x',
      OPENAI_BASE_URL: 'http://user:secret@127.0.0.1:1/v1',
    })
    const view = await agent.view(put(endpointAt('http://127.0.0.1:2/v1', 'other')))
    expect(view.main).toEqual({ name: 'main', demo: false })
    expect(view.configured).toMatchObject([{ name: 'main', address: expect.not.stringContaining('secret') }])
    await expect(agent.ask(put(endpointAt('http://127.0.0.1:2/v1', 'main')))).rejects.toThrow(
      'There is a model “main” already: give this one another label.',
    )
    await expect(agent.ask(put(endpointAt('http://127.0.0.1:2/v1', 'x', 'x')))).rejects.toThrow('“x” already')
  })

  test('is changed by one administrator at a time, and its key stays with its address', async () => {
    const agent = await start(newFolder())
    const { endpoints } = await agent.view(put(endpointAt('http://127.0.0.1:1/v1', 'a'), { apiKey: KEY }))
    const id = endpoints[0]?.id ?? ''
    const changed = { ...endpointAt('http://127.0.0.1:1/v1', 'a', 'b'), name: 'Renamed' }
    expect((await agent.view(put(changed, { id, revision: 1 }))).endpoints).toMatchObject([
      { id, name: 'Renamed', hasKey: true, revision: 2 },
    ])
    await expect(agent.ask(put(changed, { id, revision: 1 }))).rejects.toThrow('has changed in the meantime')
    const elsewhere = endpointAt('http://127.0.0.1:9/v1', 'a')
    await expect(agent.ask(put(elsewhere, { id, revision: 2 }))).rejects.toThrow('Enter the key again')
    expect((await agent.view(put(elsewhere, { id, revision: 2, apiKey: null }))).endpoints).toMatchObject([
      { hasKey: false },
    ])
    await expect(agent.ask(put(elsewhere, { id: 'gone', revision: 1 }))).rejects.toThrow('no longer exists')
  })

  test('needs prices where people are limited in dollars', async () => {
    const agent = await start(newFolder(), { SANDLOT_MAX_COST_PER_DAY: '5' })
    const free = { ...endpointAt('http://127.0.0.1:1/v1'), models: [{ name: 'unheard-of' }] }
    await expect(agent.ask(put(free))).rejects.toThrow('unheard-of needs prices')
    expect((await agent.view(put(endpointAt('http://127.0.0.1:1/v1', 'a')))).main.name).toBe('a')
    const unpriced = (baseUrl: string, label: string) =>
      put({ name: 'Theirs', baseUrl, models: [{ name: 'claude-opus-4-5', label }] })
    await expect(agent.ask(unpriced('http://127.0.0.1:1/v1', 'ours'))).rejects.toThrow('needs prices')
    const { knownPrices } = await agent.view(unpriced('https://api.anthropic.com/v1', 'Opus'))
    expect(knownPrices).toMatchObject({ a: { input: 1 }, Opus: { input: 5, output: 25, cached: 0.5 } })
  })

  test('a limit in dollars names the place of the missing price: the page, or the file', async () => {
    const limited = (agent: Awaited<ReturnType<typeof start>>) =>
      agent.asked.request(EXT.settings, {
        user: ROOT,
        ask: {
          do: 'put',
          subject: { kind: 'person', id: 'ada' },
          settings: { limits: { cost: 1 } },
          revision: 0,
        },
      })
    const onPage = await start(newFolder())
    await onPage.ask(put({ ...endpointAt('http://127.0.0.1:1/v1'), models: [{ name: 'unheard-of' }] }))
    await expect(limited(onPage)).rejects.toThrow(/unheard-of has none\. Add it under Settings → Models, or/)
    const inFile = await start(newFolder(), { OPENAI_MODEL: 'home-made' })
    await expect(limited(inFile)).rejects.toThrow(
      /home-made has none\. Add it in the configuration file, under/,
    )
  })

  test('has the price of its own address where two serve a model of the same name', async () => {
    const agent = await start(newFolder())
    const at = (baseUrl: string, label: string) =>
      put({ name: label, baseUrl, models: [{ name: 'gemini-2.5-flash', label }] })
    await agent.view(at('https://generativelanguage.googleapis.com/v1beta/openai', 'theirs'))
    const { knownPrices } = await agent.view(at('http://127.0.0.1:1/v1', 'ours'))
    expect(knownPrices).toEqual({ theirs: { input: 0.3, output: 2.5, cached: 0.03 } })
  })

  test('is an administrator’s alone', async () => {
    const agent = await start(newFolder())
    for (const what of [{ do: 'list' }, { do: 'remove', id: 'x' }] as const)
      await expect(agent.ask(what, ADA)).rejects.toThrow('Only an administrator')
  })
})

/** `modelsView` of the version before the choice of the API, which refuses unknown members of models. */
const oldPrice = z.strictObject({ input: z.number(), output: z.number(), cached: z.number().optional() })
const oldModel = z.strictObject({
  name: z.string(),
  label: z.string().optional(),
  contextWindow: z.int().optional(),
  images: z.boolean().optional(),
  price: oldPrice.optional(),
})
const oldView = z.object({
  configured: z.array(z.object({ name: z.string(), address: z.string(), price: oldPrice.optional() })),
  endpoints: z.array(
    z.strictObject({
      name: z.string(),
      baseUrl: z.string(),
      models: z.array(oldModel),
      id: z.string(),
      revision: z.int(),
      hasKey: z.boolean(),
    }),
  ),
  knownPrices: z.record(z.string(), oldPrice),
  main: z.object({ name: z.string(), demo: z.boolean() }),
})

describe('settings of a model that the version before does not know', () => {
  const price = { input: 1, output: 2 }
  const models: Endpoint['models'] = [
    { name: 'm', label: 'A', wire: 'responses', streaming: false, price: { ...price, cacheWrite: 4 } },
    { name: 'm', label: 'B', wire: 'anthropic', price: { ...price, cacheWrite: 5 } },
  ]
  const ours: Endpoint = { name: 'Ours', baseUrl: 'http://127.0.0.1:1/v1', models }

  test('are not in what a service of that version reads, and its changes leave them as they are', async () => {
    const agent = await start(newFolder(), { OPENAI_MODEL: 'main', OPENAI_API_KEY: 'sk-x' })
    const old = oldView.parse(await agent.ask(put(ours)))
    const [{ id, revision, hasKey: _hasKey, ...endpoint } = { id: '' }] = old.endpoints
    expect(endpoint).toEqual({
      ...ours,
      models: [
        { name: 'm', label: 'A', price },
        { name: 'm', label: 'B', price },
      ],
    })
    const renamed = { ...ours, ...endpoint, name: 'Renamed' }
    oldView.parse(await agent.ask(put(renamed, { id, revision: revision ?? 0 })))
    expect((await agent.view({ do: 'list' })).endpoints).toMatchObject([{ name: 'Renamed', models }])
  })

  test('are unchanged where a request leaves them out, also with another label, and as at first where it says so', async () => {
    const agent = await start(newFolder())
    const id = (await agent.view(put(ours))).endpoints[0]?.id ?? ''
    const change = async (revision: number, ...changed: EndpointRequest['models']) => {
      const request = { name: 'Ours', baseUrl: ours.baseUrl, models: changed, id, revision }
      return (await agent.view({ ...request, do: 'put' })).endpoints[0]?.models
    }
    const label = 'C'
    expect(await change(1, { name: 'm', label, price }, { name: 'm', label: 'B', price })).toEqual([
      { ...models[0], label },
      models[1],
    ])
    const reset = { wire: null, streaming: true, price: { ...price, cacheWrite: null } }
    expect(await change(2, { name: 'm', label, ...reset }, { name: 'other', label: 'B', price })).toEqual([
      { name: 'm', label, wire: 'chat', streaming: true, price },
      { name: 'other', label: 'B', wire: 'chat', price },
    ])
  })
})

describe('the API of a model', () => {
  const rowsOf = async (data: string) => {
    const store = await openSessionStore(join(data, 'sessions.db'))
    const rows = await store.people.modelEndpoints.all()
    const audit = await store.admin.audit.page({ limit: 10 })
    await store.close()
    return { wires: rows.flatMap(({ endpoint }) => endpoint.models.map(({ wire }) => wire)), audit }
  }

  test('begins with what suits the address, for new models alone', async () => {
    const agent = await start(newFolder())
    const wires = async (baseUrl: string, name: string) => {
      const { endpoints } = await agent.view(put({ ...endpointAt(baseUrl, name), name }))
      return endpoints.at(-1)
    }
    expect((await wires('https://api.openai.com/v1', 'a'))?.models[0]?.wire).toBe('responses')
    expect((await wires('https://api.anthropic.com', 'b'))?.models[0]?.wire).toBe('anthropic')
    const known = await wires('http://127.0.0.1:1/v1', 'c')
    expect(known?.models[0]?.wire).toBe('chat')
    // One that says nothing of the API keeps it; a new one, or another address, begins anew.
    const id = known?.id ?? ''
    const more = (baseUrl: string, revision: number, ...names: string[]) =>
      agent.view(put({ ...endpointAt(baseUrl, ...names), name: 'c' }, { id, revision }))
    const own: Endpoint = { ...endpointAt('http://127.0.0.1:1/v1', 'c'), name: 'c' }
    const [model] = own.models
    if (model === undefined) throw new Error('no model')
    await agent.view(put({ ...own, models: [{ ...model, wire: 'anthropic' }] }, { id, revision: 1 }))
    const both = await more('http://127.0.0.1:1/v1', 2, 'c', 'd')
    expect(both.endpoints.at(-1)?.models.map(({ wire }) => wire)).toEqual(['anthropic', 'chat'])
    const moved = await more('https://api.openai.com/v1', 3, 'c', 'd')
    expect(moved.endpoints.at(-1)?.models.map(({ wire }) => wire)).toEqual(['responses', 'responses'])
  })

  test('of a row of an earlier version stays Chat Completions, whatever its address', async () => {
    const provider = await providerOf(textAnswer('hello'), textAnswer('again'))
    const data = newFolder()
    const first = await start(data)
    const endpoint = endpointAt(provider.baseUrl.replace('/v1', '/anthropic'), 'a')
    const view = await first.view(put(endpoint))
    expect(view.endpoints[0]?.models[0]?.wire).toBe('anthropic')
    await first.leave()
    const db = new DatabaseSync(join(data, 'sessions.db'))
    db.exec('update model_endpoints set asking = null')
    db.close()
    const second = await start(data)
    await second.says('hi')
    const id = view.endpoints[0]?.id ?? ''
    await second.view(put({ ...endpoint, name: 'Renamed' }, { id, revision: 1 }))
    await second.says('hi')
    const asked = provider.requests.map(({ path }) => path)
    expect(asked).toEqual(['/anthropic/chat/completions', '/anthropic/chat/completions'])
  })

  test('is switched once where a prompt finds it elsewhere: stored, logged, audited, and used after a restart', async () => {
    const provider = await providerOf(ELSEWHERE, responsesAnswer('hello'), responsesAnswer('again'))
    const data = newFolder()
    const first = await start(data)
    const endpoint = endpointAt(provider.baseUrl, 'big', 'big')
    const [one, other] = endpoint.models
    if (one === undefined || other === undefined) throw new Error('no models')
    const models = [one, { ...other, label: 'other' }]
    await first.view(put({ ...endpoint, models }, { apiKey: KEY }))
    await first.says('hi')
    await expect
      .poll(async () => (await first.view({ do: 'list' })).endpoints[0])
      .toMatchObject({ revision: 2, models: [{ wire: 'responses' }, { wire: 'chat' }], hasKey: true })
    await first.leave()
    expect(first.lines.filter((line) => line.includes('another API'))).toHaveLength(1)
    const { wires, audit } = await rowsOf(data)
    expect(wires).toEqual(['responses', 'chat'])
    expect(audit[0]).toMatchObject({
      what: 'endpoint_changed',
      who: { id: 'sandlot' },
      before: { model: 'big', api: 'chat' },
      after: { model: 'big', api: 'responses' },
    })
    const second = await start(data)
    await second.says('hi')
    expect(provider.requests.map(({ path }) => path)).toEqual([
      '/v1/chat/completions',
      '/v1/responses',
      '/v1/responses',
    ])
  })

  test('of a model of the configuration is found with the first request, and kept in memory', async () => {
    const provider = await providerOf(ELSEWHERE, responsesAnswer('hello'), responsesAnswer('again'))
    const agent = await start(newFolder(), {
      OPENAI_MODEL: 'main',
      OPENAI_API_KEY: 'sk-x',
      OPENAI_BASE_URL: provider.baseUrl,
    })
    expect((await agent.view({ do: 'list' })).configured).toMatchObject([{ wire: 'chat' }])
    await agent.says('hi')
    await agent.says('hi')
    expect(provider.requests.map(({ path }) => path.replace('/v1/', ''))).toEqual([
      'chat/completions',
      'responses',
      'responses',
    ])
    expect((await agent.view({ do: 'list' })).configured).toMatchObject([{ wire: 'responses' }])
  })

  test('whole answers alone are asked for where it cannot stream', async () => {
    const provider = await providerOf(errorAnswer(200, WIRE_ANSWERS.chat.whole({ text: 'hello' })))
    const agent = await start(newFolder())
    const endpoint = endpointAt(provider.baseUrl, 'big')
    const models = endpoint.models.map((model) => ({ ...model, streaming: false }))
    const view = await agent.view(put({ ...endpoint, models }))
    expect(view.endpoints[0]?.models).toMatchObject([{ streaming: false }])
    await agent.says('hi')
    expect(provider.requests[0]?.body.stream).toBe(false)
  })
})

describe('a test of an endpoint', () => {
  test('tries one API after the other until the model calls the tool, and says which one it was', async () => {
    const ping = [{ id: 'c', name: 'ping', args: '{}' }]
    const provider = await providerOf(ELSEWHERE, ...[1, 2].map(() => responsesAnswer('', ping)))
    const agent = await start(newFolder())
    const { steps, wire } = await agent.tried({ baseUrl: provider.baseUrl, model: 'big' })
    expect(wire).toBe('responses')
    expect(steps.slice(1).map(({ ok, message }) => [ok, message])).toEqual([
      [false, expect.stringMatching(/^Chat Completions doesn’t work\. .*only supported in v1.responses/)],
      [true, 'Responses works.'],
      [true, 'Works.'],
    ])
    const known = await agent.tried({ baseUrl: provider.baseUrl, model: 'big', wire: 'responses' })
    expect([known.wire, known.steps.length]).toEqual(['responses', 3])
  })

  test('does not ask over another API where the key, the account or the load is the reason', async () => {
    for (const [status, message] of [
      [401, 'Incorrect API key.'],
      [402, 'Payment required.'],
      [429, 'Slow down.'],
    ] as const) {
      const provider = await providerOf(errorAnswer(status, { error: { message } }))
      const agent = await start(newFolder())
      const { steps, wire } = await agent.tried({ baseUrl: provider.baseUrl, apiKey: 'sk-x', model: 'big' })
      expect([wire, steps.length, provider.requests.length]).toEqual([undefined, 2, 1])
      expect(steps[1]?.message).not.toContain('OPENAI_')
    }
  })

  test('lists its models, and streams an answer that has to call a tool', async () => {
    const missing = errorAnswer(404, '404 page not found')
    const provider = await providerOf(
      toolCalls([{ id: 'c', name: 'ping', args: {} }]),
      textAnswer('pong'),
      missing,
      missing,
    )
    const agent = await start(newFolder())
    const good = await agent.tried({ baseUrl: provider.baseUrl, apiKey: KEY, model: 'big' })
    expect(good.steps.map(({ step, ok }) => [step, ok])).toEqual([
      ['list', false],
      ['stream', true],
      ['tool', true],
    ])
    const talker = await agent.tried({ baseUrl: provider.baseUrl, model: 'talker' })
    expect(talker.steps[2]).toMatchObject({ step: 'tool', ok: false, message: /answered in words/ })
    expect(talker.wire).toBe(undefined)
  })

  test('reads the list; a redirect is not followed, and a list that is none or never ends is told', async () => {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(`${request.url} ${request.headers.authorization}`)
      if (request.url === '/good/models') response.end('{"data":[{"id":"a"},{"id":"b"}]}')
      else if (request.url === '/moved/models') response.writeHead(302, { location: '/good/models' }).end()
      else if (request.url === '/huge/models') {
        const write = (): void => void (response.destroyed || response.write('x'.repeat(65_536), write))
        write()
      } else response.end('<html>')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closing.push(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
    const at = (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${path}`
    const agent = await start(newFolder())
    expect(await agent.tried({ baseUrl: at('good/'), apiKey: KEY })).toMatchObject({
      models: ['a', 'b'],
      steps: [{ step: 'list', ok: true, message: '2 found.' }],
    })
    for (const [path, why] of [
      ['moved', 'status 302'],
      ['huge', 'more than'],
      ['page', 'is none'],
    ] as const) {
      const { steps, models } = await agent.tried({ baseUrl: at(path) })
      expect([models, steps[0]?.ok, steps[0]?.message]).toEqual([
        undefined,
        false,
        expect.stringContaining(why),
      ])
    }
    expect(asked).toContain(`/good/models Bearer ${KEY}`)
    // The key of one endpoint goes to no other address.
    const { endpoints } = await agent.view(put(endpointAt(at('good'), 'a'), { apiKey: KEY }))
    const id = endpoints[0]?.id ?? ''
    await agent.tried({ baseUrl: at('page'), id })
    await agent.tried({ baseUrl: at('good'), id })
    expect(asked.slice(-2)).toEqual(['/page/models undefined', `/good/models Bearer ${KEY}`])
  })
})
