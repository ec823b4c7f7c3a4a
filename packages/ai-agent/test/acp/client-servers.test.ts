/** MCP servers that an editor names for its session, with the SDK's own client and real servers. */
import { type CreateElicitationRequest, methods } from '@agentclientprotocol/sdk'
import { safeFetch } from '@sandlot/shared/node/safe-fetch'
import { describe, expect, test } from 'vitest'
import { ClientServers } from '../../src/acp/editor/client-servers.ts'
import { hostRefusal } from '../../src/approval/hosts.ts'
import { ruleSettings, rulesSection } from '../../src/approval/config.ts'
import {
  type Core,
  AgentBench,
  newSession as plainSession,
  outcomes,
  whenIdle,
} from '../support/agent-fixture.ts'
import { type Scripted, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { startHttpServer } from '../mcp/http-server.ts'
import { startOAuthServer } from '../mcp/oauth/server.ts'
import { type McpBench, SCRIPT, isAlive, openMcpBench, scripted, until } from '../mcp/mcp-bench.ts'
import {
  type ClientOptions,
  type TestClient,
  ADA,
  by,
  connect,
  newSession,
  said,
  shown,
  text,
} from './test-client.ts'

type Resolve = NonNullable<NonNullable<Parameters<typeof safeFetch>[0]>['resolve']>

const FOREIGN = { capabilities: {} }
/** An editor that shows what the agent has to say beside the model’s answers. */
const WITH_NOTICES = { ...FOREIGN, clientCapabilities: { session: { notices: {} } } }
const CWD = '/'

interface Editor extends AsyncDisposable {
  bench: AgentBench
  core: Core
  mcp: McpBench
  servers: ClientServers
  hidden: string[]
  client(options?: ClientOptions): Promise<TestClient>
  /** The names of the tools that the model got with this request. */
  offered(request: number): string[]
}

/** The agent as an editor starts it: programs run beside it. */
async function editor(
  script: readonly Scripted[],
  options: {
    servers?: Record<string, object>
    rules?: object
    inSandbox?: true
    hasTools?: () => boolean
  } = {},
): Promise<Editor> {
  const bench = await AgentBench.start(script)
  const rules = rulesSection.parse(options.rules ?? {})
  const { deployment } = ruleSettings(rules)
  const mcp = openMcpBench(options.servers ?? {}, {
    clientServerFetch: () => {
      const refusal = async (host: string, port: number) => hostRefusal(deployment, host, port)
      return { server: safeFetch({ refusal, loopback: true }), authority: safeFetch({ refusal }) }
    },
  })
  const hidden: string[] = []
  const servers = new ClientServers({
    mcp: mcp.mcp,
    hasTools: options.hasTools ?? (() => true),
    redact: (secret) => void hidden.push(secret),
    ...(options.inSandbox ? {} : { hostEnvironment: { PATH: process.env['PATH'] ?? '' } }),
  })
  const core = await bench.core({ rules, parts: { tools: (...asked) => servers.toolsOf(...asked) } })
  return {
    bench,
    core,
    mcp,
    servers,
    hidden,
    client: (more = WITH_NOTICES) => connect(core, { ...more, parts: { clientServers: servers } }),
    offered: (request) =>
      (bench.provider.requests[request]?.body.tools ?? []).map(
        (tool) => (tool as { function: { name: string } }).function.name,
      ),
    [Symbol.asyncDispose]: async () => {
      await mcp.close()
      await bench[Symbol.asyncDispose]()
    },
  }
}

const program = (name: string, env: Record<string, string> = {}, more: object = {}): object => ({
  name,
  command: process.execPath,
  args: [SCRIPT],
  env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
  ...more,
})
const http = (name: string, url: string, headers: Record<string, string> = {}): object => ({
  type: 'http',
  name,
  url,
  headers: Object.entries(headers).map(([key, value]) => ({ name: key, value })),
})
const call = (name: string, args: Record<string, unknown> = {}) =>
  toolCalls([{ id: `c_${name}`, name, args }])
const prompt = (one: TestClient, sessionId: string): Promise<Record<string, unknown>> =>
  one.request(methods.agent.session.prompt, { sessionId, prompt: text('go') })
const yolo = (one: TestClient, sessionId: string): Promise<unknown> =>
  one.request(methods.agent.session.setMode, { sessionId, modeId: 'yolo' })

describe('MCP servers of an editor', () => {
  test('are real: tools over HTTP and from a program, beside those of the deployment, whose names they cannot take', async () => {
    await using web = await startHttpServer()
    const script = [
      toolCalls([
        { id: 'a', name: 'notes_2_look', args: {} },
        { id: 'b', name: 'notes_look', args: {} },
        { id: 'c', name: 'environment', args: {} },
      ]),
      textAnswer('done'),
    ]
    await using its = await editor(script, { servers: { notes: { url: web.url } } })
    await using one = await its.client()
    const mcpServers = [
      http('notes', web.url, { authorization: 'Bearer editors-own-token' }),
      program('mine', { MODE: 'quiet' }),
    ]
    const sessionId = await newSession(one, { cwd: CWD, mcpServers })
    await yolo(one, sessionId)
    expect(await prompt(one, sessionId)).toEqual({ stopReason: 'end_turn' })
    expect(its.offered(0)).toEqual(
      expect.arrayContaining(['notes_look', 'notes_2_look', 'say', 'environment']),
    )
    const { log } = await its.core.manager.get('local', sessionId)
    expect(outcomes(log)).toEqual({ a: ['completed'], b: ['completed'], c: ['completed'] })
    const asked = web.seen.filter(({ rpc }) => rpc === 'tools/call')
    expect(asked.map(({ headers }) => headers.authorization)).toEqual(['Bearer editors-own-token', undefined])
    // The editor's own folder, and what it said, on top of what any program gets.
    const answer = JSON.stringify(its.bench.provider.requests[1]?.body.messages)
    expect(answer).toContain('\\"cwd\\":\\"/\\"')
    expect(answer).toContain('\\"MODE\\":\\"quiet\\"')

    // Nobody else's session has them.
    its.bench.provider.add(textAnswer('no'))
    const other = await newSession(one, { cwd: CWD })
    await prompt(one, other)
    expect(its.offered(2)).toEqual(['look', 'other'])
  })

  test('need leave for what may change something, by the rules and the mode, like any other', async () => {
    await using its = await editor([call('say', { text: 'x' }), textAnswer('done')])
    const asked: string[] = []
    await using one = await connect(its.core, {
      ...FOREIGN,
      parts: { clientServers: its.servers },
      permission: async ({ toolCall }) => {
        asked.push(String(toolCall.title))
        return { outcome: { outcome: 'selected', optionId: 'reject_once' } }
      },
    })
    const sessionId = await newSession(one, { cwd: CWD, mcpServers: [program('mine')] })
    await prompt(one, sessionId)
    expect(asked).toEqual([expect.stringContaining('mine')])
    expect(outcomes((await its.core.manager.get('local', sessionId)).log)).toEqual({
      c_say: ['failed denied'],
    })
  })

  test('one that wants a sign-in shows the link, whose way back leads to this machine; then it is there, also under another name', async () => {
    await using guarded = await startOAuthServer()
    await using its = await editor([
      call('connect_open'),
      textAnswer('Open the link.'),
      call('look'),
      textAnswer('done'),
      textAnswer('yes'),
      textAnswer('no'),
    ])
    await using one = await its.client()
    const open = await newSession(one, { cwd: CWD, mcpServers: [http('open', guarded.url)] })
    await yolo(one, open)
    await prompt(one, open)
    const [, link = ''] = /“open” wants you to sign in\. .* after that: (\S+)\)/.exec(said(one, open)) ?? []
    const back = new URL(new URL(link).searchParams.get('redirect_uri') ?? '')
    expect(back.href).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/oauth\/mcp$/)
    const shown = JSON.stringify(one.updates.filter(({ update }) => 'toolCallId' in update))
    expect(shown).toContain(JSON.stringify({ name: 'Connect open', uri: link, type: 'resource_link' }))
    // For the person only: a model would repeat it.
    expect(JSON.stringify(its.bench.provider.requests[1]?.body)).not.toContain('127.0.0.1')

    const forged = await fetch(`${back.href}?code=x&state=guessed`)
    expect([forged.status, await forged.text()]).toEqual([400, expect.stringContaining('not known any more')])
    expect((await fetch(new URL('/', back))).status).toBe(404)
    expect((await fetch(back, { method: 'POST' })).status).toBe(404)
    const agreed = await fetch(link)
    expect([agreed.status, await agreed.text()]).toEqual([200, expect.stringContaining('open is connected')])
    expect(agreed.headers.get('cache-control')).toBe('no-store')
    // Each link is good once.
    expect((await fetch(agreed.url)).status).toBe(400)

    await prompt(one, open)
    expect(its.offered(2)).toEqual(['look', 'other'])
    const { log } = await its.core.manager.get('local', open)
    expect(outcomes(log)).toEqual({ c_connect_open: ['failed needs_auth'], c_look: ['completed'] })
    const other = await newSession(one, { cwd: CWD, mcpServers: [http('same', guarded.url)] })
    await prompt(one, other)
    expect(its.offered(4)).toEqual(['look', 'other'])
    expect(said(one, other)).not.toContain('sign in')
    expect(guarded.registrations).toBe(1)
    expect([...its.mcp.secrets]).toEqual([])
    for (const token of guarded.valid) expect(JSON.stringify([log, its.mcp.logged])).not.toContain(token)
    // Removed users keep no access.
    await its.mcp.mcp.removeUser('local', 'keep')
    const later = await newSession(one, { cwd: CWD, mcpServers: [http('open', guarded.url)] })
    await prompt(one, later)
    expect(said(one, later)).toContain('wants you to sign in')
    await its.mcp.mcp.close()
    await expect(fetch(back)).rejects.toThrow('fetch failed')
  })

  test('an authority that does not answer for a while takes nobody’s sign-in: the call may be made again', async () => {
    await using guarded = await startOAuthServer()
    await using its = await editor([
      textAnswer('Open the link.'),
      async () => {
        guarded.valid.clear()
        guarded.authoritySays = { token_endpoint: `${guarded.origin}/away` }
        return call('look')
      },
      textAnswer('later'),
      textAnswer('there'),
    ])
    await using one = await its.client()
    const sessionId = await newSession(one, { cwd: CWD, mcpServers: [http('open', guarded.url)] })
    await yolo(one, sessionId)
    await prompt(one, sessionId)
    const [, link = ''] = / after that: (\S+)\)/.exec(said(one, sessionId)) ?? []
    expect((await fetch(link)).status).toBe(200)
    await prompt(one, sessionId)
    const { log } = await its.core.manager.get('local', sessionId)
    expect(outcomes(log)).toEqual({ c_look: ['failed unavailable'] })
    guarded.authoritySays = {}
    await prompt(one, sessionId)
    expect(its.offered(3)).toEqual(['look', 'other'])
    expect(guarded.registrations).toBe(1)
    expect(said(one, sessionId)).not.toContain('token in its headers')
  })

  test('where the client can open links, it asks its user whether to open that one', async () => {
    await using guarded = await startOAuthServer()
    await using its = await editor([textAnswer('one'), textAnswer('two')])
    const asked: CreateElicitationRequest[] = []
    await using one = await its.client({
      ...FOREIGN,
      clientCapabilities: { elicitation: { url: {} } },
      elicitation: async (request) => {
        asked.push(request)
        if (asked.length > 1) throw new Error('the window is gone')
        return { action: 'decline' }
      },
    })
    for (const round of [1, 2]) {
      const sessionId = await newSession(one, { cwd: CWD, mcpServers: [http('open', guarded.url)] })
      await prompt(one, sessionId)
      await until(() => asked.length === round)
      expect(asked.at(-1)).toMatchObject({
        mode: 'url',
        sessionId,
        elicitationId: expect.any(String),
        message: expect.stringContaining('“open” wants you to sign in.'),
        url: expect.stringContaining('redirect_uri=http%3A%2F%2F127.0.0.1'),
      })
      // In words only where that did not work.
      if (round === 2) await until(() => said(one, sessionId).includes('redirect_uri='))
      else expect(said(one, sessionId)).not.toContain('redirect_uri=')
    }
  })

  test('a client that let its user open a link hears when they are back, whatever came of it; one that did not hears nothing', async () => {
    await using guarded = await startOAuthServer()
    await using its = await editor(Array.from({ length: 3 }, () => textAnswer('ok')))
    const offered = async (action: 'accept' | 'decline') => {
      const asked: CreateElicitationRequest[] = []
      const client = await its.client({
        ...FOREIGN,
        clientCapabilities: { elicitation: { url: {} } },
        elicitation: async (request) => {
          asked.push(request)
          return { action }
        },
      })
      const sessionId = await newSession(client, { cwd: CWD, mcpServers: [http('open', guarded.url)] })
      await prompt(client, sessionId)
      await until(() => asked.length === 1)
      const { elicitationId, url } = asked[0] as { elicitationId: string; url: string }
      const completed = () => client.others.filter(({ method }) => method === 'elicitation/complete')
      return {
        client,
        url,
        completed,
        complete: [{ method: 'elicitation/complete', params: { elicitationId } }],
      }
    }
    const one = await offered('accept')
    const two = await offered('decline')
    expect(two.url).toBe(one.url)
    expect(one.completed()).toEqual([])
    expect((await fetch(one.url)).status).toBe(200)
    await until(() => one.completed().length > 0)
    expect(one.completed()).toEqual(one.complete)
    await two.client.request(methods.agent.session.list, {})
    expect(two.completed()).toEqual([])

    await its.mcp.mcp.removeUser('local', 'keep')
    const three = await offered('accept')
    const { searchParams } = new URL(three.url)
    const back = new URL(searchParams.get('redirect_uri') ?? '')
    back.search = `error=access_denied&state=${searchParams.get('state')}`
    expect((await fetch(back)).status).toBe(400)
    await until(() => three.completed().length > 0)
    expect(three.completed()).toEqual(three.complete)
    // Its own, and nobody else's.
    expect(one.completed()).toEqual(one.complete)
    for (const { client } of [one, two, three]) await client[Symbol.asyncDispose]()
  })

  test('one that has no sign-in by a link is told of, and whoever calls it hears what to do; nothing is registered for it', async () => {
    await using guarded = await startOAuthServer()
    guarded.authoritySays = { registration_endpoint: undefined }
    guarded.valid.add('a-token-of-the-editor')
    await using its = await editor([
      call('connect_open'),
      textAnswer('No.'),
      (request) => {
        // In the middle of a prompt that began with its tools.
        guarded.valid.clear()
        expect(request.body.tools).toMatchObject([{ function: { name: 'look' } }, {}])
        return call('look')
      },
      textAnswer('No.'),
    ])
    await using one = await its.client()
    const whatToDo =
      /The user has to connect \w+ first\. It has no sign-in by a link here: .*a token in its headers/
    const open = await newSession(one, { cwd: CWD, mcpServers: [http('open', guarded.url)] })
    await prompt(one, open)
    expect(shown(one, open)).toContain(
      'The MCP server “open” cannot be used: it wants a sign-in; give it a token in its headers\n',
    )
    const bearer = { Authorization: 'Bearer a-token-of-the-editor' }
    const ended = await newSession(one, { cwd: CWD, mcpServers: [http('ended', guarded.url, bearer)] })
    await one.request(methods.agent.session.setMode, { sessionId: ended, modeId: 'yolo' })
    await prompt(one, ended)
    for (const [sessionId, callId] of [
      [open, 'c_connect_open'],
      [ended, 'c_look'],
    ] as const) {
      const { log } = await its.core.manager.get('local', sessionId)
      expect(outcomes(log)).toEqual({ [callId]: ['failed needs_auth'] })
      expect(JSON.stringify(log)).toMatch(whatToDo)
    }
    expect(guarded.registrations).toBe(0)
  })

  test('one that cannot be used is told with the prompt, once, and again when it changes; the rest works', async () => {
    await using web = await startHttpServer()
    const answers = ['one', 'two', 'three'].map((words) => textAnswer(words))
    await using its = await editor(answers)
    await using one = await its.client()
    let down = true
    web.intercept = (_request, response) => {
      if (down) response.writeHead(500).end('out of order')
      return down
    }
    const mcpServers = [
      program('gone', {}, { command: '/no/such/program' }),
      http('broken', web.url),
      http('odd', 'ftp://example.org'),
      program('mine'),
    ]
    const sessionId = await newSession(one, { cwd: '/workspace', mcpServers })
    await prompt(one, sessionId)
    const first = shown(one, sessionId)
    expect(first).toContain('“gone” cannot be used: its command /no/such/program was not found')
    expect(first).toContain('“broken” cannot be used: it answered 500: ')
    expect(first).toContain('“odd” cannot be used: ')
    expect(first).not.toContain('“mine”')
    expect(first.endsWith('one')).toBe(true)
    expect(its.offered(0)).toContain('say')
    down = false
    await until(async () => {
      const states = await its.mcp.mcp.states('local', new AbortController().signal, sessionId)
      return states.some(({ name, state }) => name === 'broken' && state === 'ready')
    })
    await prompt(one, sessionId)
    const second = shown(one, sessionId).slice(first.length)
    expect(second).toBe('The MCP server “broken” can be used again: \ntwo')

    await one.request(methods.agent.session.prompt, { sessionId, prompt: text('/mcp') })
    const third = shown(one, sessionId).slice(first.length + second.length)
    expect(third).toContain('- mine: ready; ')
    expect(third).toContain('- broken: ready; look')
    expect(third).toContain('- gone: cannot be used; its command /no/such/program was not found')
  })

  test('over SSE are refused with the session, whichever way it is opened', async () => {
    await using its = await editor([textAnswer('done')])
    await using one = await its.client()
    const mcpServers = [
      program('mine'),
      { type: 'sse', name: 'old', url: 'http://127.0.0.1:1/sse', headers: [] },
    ]
    const refused = { code: -32602, message: expect.stringContaining('SSE') as unknown }
    await expect(newSession(one, { cwd: CWD, mcpServers })).rejects.toMatchObject(refused)
    expect(await one.request(methods.agent.session.list, {})).toMatchObject({ sessions: [] })
    const sessionId = await newSession(one, { cwd: CWD, mcpServers: [] })
    for (const method of [methods.agent.session.load, methods.agent.session.resume])
      await expect(one.request(method, { sessionId, cwd: CWD, mcpServers })).rejects.toMatchObject(refused)
  })

  test('a client without notices gets the model’s answer alone', async () => {
    await using its = await editor([textAnswer('done')])
    await using one = await its.client(FOREIGN)
    const mcpServers = [
      program('gone', {}, { command: '/no/such/program' }),
      http('odd', 'ftp://example.org'),
    ]
    const sessionId = await newSession(one, { cwd: '/home/ada/project', mcpServers })
    await prompt(one, sessionId)
    expect(shown(one, sessionId)).toBe('done')
  })

  test('a program is started in the user’s sandbox by an agent that was not started by the editor', async () => {
    await using its = await editor([textAnswer('done')], { inSandbox: true })
    await using one = await its.client()
    const sessionId = await newSession(one, { cwd: CWD, mcpServers: [program('mine')] })
    await prompt(one, sessionId)
    // The bench has none, and says so when it is asked for one.
    expect(shown(one, sessionId)).toContain('“mine” cannot be used: There is no sandbox here')
  })

  test('reach the internet and this machine, but no private network and no host that a rule denies', async () => {
    await using web = await startHttpServer()
    const { port } = new URL(web.url)
    await using its = await editor([textAnswer('done')], { rules: { deny: [{ host: 'localhost' }] } })
    await using one = await its.client()
    const mcpServers = [
      http('metadata', 'http://169.254.169.254/mcp'),
      http('router', 'http://[fe80::1]/mcp'),
      http('mapped', 'http://[::ffff:10.0.0.1]/mcp'),
      http('number', 'http://167772161/mcp'),
      http('denied', `http://localhost:${port}/mcp`),
      http('here', web.url),
    ]
    const sessionId = await newSession(one, { cwd: '/workspace', mcpServers })
    await prompt(one, sessionId)
    const words = shown(one, sessionId)
    for (const name of ['metadata', 'router', 'mapped', 'number'])
      expect(words).toMatch(new RegExp(`“${name}” cannot be used: [^\\n]*is an address of a private network`))
    expect(words).toMatch(/“denied” cannot be used: [^\n]*a rule denies/)
    expect(words).not.toContain('“here”')
    expect(its.offered(0)).toContain('look')
  })

  test('a name is looked up once, for the connection, and one private address among its own is enough', async () => {
    await using web = await startHttpServer()
    const { port } = new URL(web.url)
    const looks: string[] = []
    const answers: Record<string, string[]> = {
      'turns.example': ['127.0.0.1'],
      'inside.example': ['127.0.0.1', '10.1.2.3'],
      'metadata.example': ['169.254.169.254'],
    }
    const resolve: Resolve = (name, told) => {
      looks.push(name)
      const found = (answers[name] ?? []).map((address) => ({ address, family: 4 }))
      // The second time it would be another: nobody asks.
      answers[name] = ['10.9.9.9']
      if (name === 'nowhere.example') told(new Error('no such name'), undefined as never)
      else told(null, found)
    }
    const fetch = safeFetch({ resolve, loopback: true })
    const get = (host: string) => fetch(`http://${host}:${port}/mcp`)
    expect((await get('turns.example')).status).toBe(405)
    for (const host of ['inside.example', 'metadata.example']) await expect(get(host)).rejects.toThrow()
    await expect(get('nowhere.example')).rejects.toThrow('fetch failed')
    expect(looks).toEqual(['turns.example', 'inside.example', 'metadata.example', 'nowhere.example'])
    expect(web.seen).toHaveLength(1)
    // A server's names may not lead to this machine.
    answers['turns.example'] = ['127.0.0.1']
    const authority = safeFetch({ resolve })
    await expect(authority(`http://turns.example:${port}/mcp`)).rejects.toThrow('not a public one')
    expect(web.seen).toHaveLength(1)
  })

  test('what they are given comes back in no event, no message to the model and no word to the client', async () => {
    await using web = await startHttpServer()
    web.intercept = (request, response, message) => {
      const { authorization } = request.headers
      if (message?.method !== 'initialize' || authorization === undefined) return false
      response.writeHead(403).end(`nobody knows ${authorization}`)
      return true
    }
    const script = [call('environment'), call('say', { text: 'again: hunter2-hunter2' }), textAnswer('done')]
    await using its = await editor(script)
    await using one = await its.client()
    const env = { API_TOKEN: 'hunter2-hunter2', ID: 'AKx81LmnoPq29vTzW0aB', FOLDER: '/srv/data/of/ada/2026' }
    const mcpServers = [
      program('mine', env, { args: [SCRIPT, '--pin', 'nobody', '--api-key', 'k3y-77'] }),
      http('web', web.url, { Authorization: 'Bearer wally7', Accept: 'application/json' }),
    ]
    const sessionId = await newSession(one, { cwd: '/workspace', mcpServers })
    await yolo(one, sessionId)
    await prompt(one, sessionId)
    const { log } = await its.core.manager.get('local', sessionId)
    const told = [...log, ...one.updates, ...its.bench.provider.requests.slice(1, 2)]
    const everything = JSON.stringify(told.filter((part) => !JSON.stringify(part).includes('again: ')))
    for (const secret of ['hunter2-hunter2', 'AKx81LmnoPq29vTzW0aB', 'wally7', 'k3y-77']) {
      expect(everything).not.toContain(secret)
      expect(its.hidden).toContain(secret)
    }
    expect(shown(one, sessionId)).toContain('“web” cannot be used: it answered 403: nobody knows [hidden]')
    // A folder is no secret.
    expect(everything).toContain('/srv/data/of/ada/2026')
  })

  test('what is allowed for good, or for a session, is not allowed to another program of that name', async () => {
    for (const optionId of ['allow_session', 'allow_always_exact']) {
      await using its = await editor(
        Array.from({ length: 4 }, () => [call('say', { text: 'x' }), textAnswer('done')]).flat(),
      )
      const asked: string[] = []
      await using one = await connect(its.core, {
        ...FOREIGN,
        parts: { clientServers: its.servers },
        permission: async ({ options }) => {
          asked.push(sessionId)
          expect(options.map((option) => option.optionId)).toContain(optionId)
          return { outcome: { outcome: 'selected', optionId } }
        },
      })
      const [first, other] = [program('fs'), program('fs', {}, { args: [SCRIPT, 'of-another-project'] })]
      let sessionId = await newSession(one, { cwd: CWD, mcpServers: [first] })
      await prompt(one, sessionId)
      expect(asked).toHaveLength(1)
      await prompt(one, sessionId)
      expect(asked).toHaveLength(1)
      if (optionId === 'allow_session')
        await one.request(methods.agent.session.load, { sessionId, cwd: CWD, mcpServers: [other] })
      else sessionId = await newSession(one, { cwd: CWD, mcpServers: [other] })
      await prompt(one, sessionId)
      expect(asked).toHaveLength(2)
    }
  })

  test('a rule that allows has to mean the program, one that denies only its name', async () => {
    const rules = { allow: [{ tool: 'fs::*' }], deny: [{ tool: 'bad::*' }] }
    const both = toolCalls(['fs_say', 'bad_say'].map((name) => ({ id: name, name, args: { text: 'x' } })))
    await using its = await editor([both, textAnswer('done')], { rules })
    const asked: string[] = []
    await using one = await connect(its.core, {
      ...FOREIGN,
      parts: { clientServers: its.servers },
      permission: async ({ toolCall }) => {
        asked.push(toolCall.toolCallId)
        return { outcome: { outcome: 'selected', optionId: 'reject_once' } }
      },
    })
    const mcpServers = [program('fs'), program('bad')]
    const sessionId = await newSession(one, { cwd: CWD, mcpServers })
    await prompt(one, sessionId)
    const { log } = await its.core.manager.get('local', sessionId)
    expect(outcomes(log)).toEqual({ fs_say: ['failed denied'], bad_say: ['failed denied'] })
    expect(asked).toHaveLength(1)
    expect(asked[0]).toContain('fs_say')
  })

  test('a call that runs is not cut when another window names others for its session', async () => {
    const script = [call('progress', { steps: 20, everyMs: 20 }), textAnswer('done')]
    await using its = await editor(script)
    await using one = await its.client()
    const sessionId = await newSession(one, { cwd: CWD, mcpServers: [program('mine')] })
    await yolo(one, sessionId)
    const over = prompt(one, sessionId)
    await until(() => JSON.stringify(one.updates).includes('in_progress'))
    await using two = await its.client()
    await two.request(methods.agent.session.load, { sessionId, cwd: CWD, mcpServers: [] })
    await over
    const { log } = await its.core.manager.get('local', sessionId)
    expect(outcomes(log)).toEqual({ c_progress: ['completed'] })
  })

  test('of a person without tools they wait, and the client reads why; with tools they are there', async () => {
    let hasTools = false
    await using its = await editor([textAnswer('ok')], { hasTools: () => hasTools })
    await using one = await its.client()
    const sessionId = await newSession(one, { cwd: CWD, mcpServers: [program('mine')] })
    const session = await its.core.manager.get('local', sessionId)
    const signal = new AbortController().signal
    expect(await its.servers.states(session, signal)).toEqual([])
    hasTools = true
    await prompt(one, sessionId)
    expect(JSON.stringify(one.updates)).toContain('There are no tools here')
    expect(its.offered(0)).toContain('say')
    expect(await its.servers.states(session, signal)).toMatchObject([{ state: 'ready' }])
  })

  test('of a client that has left while its session was loaded, they end', async () => {
    await using its = await editor([])
    await using one = await its.client()
    const sessionId = await newSession(one, { cwd: CWD })
    const session = await its.core.manager.get('local', sessionId)
    const mine = { name: 'mine', command: 'node', args: [SCRIPT], env: [] }
    its.servers.setServers(session, [mine], {
      closed: AbortSignal.abort(),
      sendNotification: () => undefined,
      offerLink: () => undefined,
    })
    const signal = new AbortController().signal
    await until(async () => (await its.servers.toolsOf('local', signal, sessionId)).listTools().length === 0)
  })

  test('end with the session, and when their client is gone and nothing runs any more', async () => {
    const pids: number[] = []
    const script = Array.from({ length: 3 }, () => [call('child'), textAnswer('done')]).flat()
    await using its = await editor(script)
    const pidOf = async (sessionId: string): Promise<number> => {
      const { log } = await its.core.manager.get('local', sessionId)
      const ended = log.findLast((event) => event.sessionUpdate === 'tool_call_update' && event.rawOutput)
      const words = ended?.sessionUpdate === 'tool_call_update' ? ended.rawOutput?.forModel : undefined
      return (JSON.parse(words ?? '[]') as number[])[0] ?? 0
    }
    await using one = await its.client()
    for (const end of ['close', 'delete', 'leave'] as const) {
      await using two = await its.client()
      const client = end === 'leave' ? two : one
      const sessionId = await newSession(client, { cwd: CWD, mcpServers: [program('mine')] })
      await yolo(client, sessionId)
      await prompt(client, sessionId)
      const pid = await pidOf(sessionId)
      pids.push(pid)
      expect(isAlive(pid)).toBe(true)
      if (end === 'leave') await two[Symbol.asyncDispose]()
      else await one.request(methods.agent.session[end], { sessionId })
      await until(() => !isAlive(pid))
      await whenIdle(await its.core.manager.get('local', sessionId).catch(() => plainSession(its.core)))
    }
    expect(new Set(pids).size).toBe(3)
  })

  test('named again they go on, others take their place; somebody else’s delete does not end them', async () => {
    await using its = await editor(Array.from({ length: 4 }, () => textAnswer('ok')))
    await using one = await its.client()
    const sessionId = await newSession(one, { cwd: CWD, mcpServers: [program('mine')] })
    await prompt(one, sessionId)
    await using ours = await connect(its.core, { parts: { clientServers: its.servers } })
    await ours.request(methods.agent.session.delete, { sessionId, ...by(ADA) })
    await one.request(methods.agent.session.resume, { sessionId, cwd: CWD })
    await prompt(one, sessionId)
    expect([its.offered(0).includes('say'), its.offered(1).includes('say')]).toEqual([true, true])
    await one.request(methods.agent.session.load, { sessionId, cwd: CWD, mcpServers: [] })
    await prompt(one, sessionId)
    expect(its.offered(2)).toEqual([])
  })

  test('a page of our own cannot name any, and there is a limit to what may be said about them', async () => {
    await using its = await editor([])
    await using ours = await connect(its.core, { parts: { clientServers: its.servers } })
    const forbidden = newSession(ours, { ...by(ADA), mcpServers: [program('mine')] })
    await expect(forbidden).rejects.toMatchObject({ data: { code: 'forbidden' } })
    await using one = await its.client()
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`KEY_${n}`, `value-${n}`]))
    const secretive = newSession(one, { cwd: CWD, mcpServers: [program('mine', many)] })
    await expect(secretive).rejects.toMatchObject({ data: { code: 'too_large' } })
    const large = newSession(one, { cwd: CWD, mcpServers: [program('mine', { X: 'x'.repeat(300_000) })] })
    await expect(large).rejects.toMatchObject({ data: { code: 'too_large' } })
    const answer = await one.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} })
    expect(answer).toMatchObject({ agentCapabilities: { mcpCapabilities: { http: true, sse: false } } })
  })
})

test('a deployment’s program of that name still has its own tools and its own rules', async () => {
  await using its = await editor([call('say', { text: 'x' }), textAnswer('done')], {
    servers: { mine: scripted('', { readOnly: ['say'], tools: ['say'] }) },
  })
  await using one = await its.client()
  const sessionId = await newSession(one, { cwd: CWD, mcpServers: [program('mine')] })
  await prompt(one, sessionId)
  expect(its.offered(0)).toEqual(expect.arrayContaining(['mine_say', 'mine_2_say']))
})
