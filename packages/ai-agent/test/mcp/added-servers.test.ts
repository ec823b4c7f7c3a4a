/** Servers that are added on the page, in an agent with real rows, secrets, servers and a real provider. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AnyMessage, PROTOCOL_VERSION, client, methods } from '@agentclientprotocol/sdk'
import { EXT, type SettingsAsk } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import {
  type ServerRequest,
  serverRequest,
  serverSignIn,
  serverStatus,
  serversView,
  type McpServersAsk,
} from '@sandlot/shared/admin/mcp-servers'
import { afterEach, describe, expect, test } from 'vitest'
import { openAgent } from '../../src/agent/agent.ts'
import { readAgentConfig } from '../../src/config/config.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { type Scripted, startFakeProvider, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { startHttpServer } from './http-server.ts'
import { openSessionStore } from '@sandlot/storage/store/open'
import { ServerRegistry } from '../../src/mcp/server-registry.ts'
import { openLocalSandboxes } from '../tools/local-sandboxes.ts'
import { SCRIPT, batchOf, openMcpBench, until } from './mcp-bench.ts'
import { startOAuthServer } from './oauth/server.ts'
import { fileFolder } from '../../../../test/folders.ts'
import { LOCAL_PROCESS } from '../../../../test/config.ts'

const folder = fileFolder('added')
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const ROOT: AgentUser = { id: 'root', role: 'admin', teams: [] }
const ADA: AgentUser = { id: 'ada', role: 'member', teams: [] }
const BOB: AgentUser = { id: 'bob', role: 'member', teams: [] }
const TOKEN = 'token-of-the-notes-0123456789'

async function start(data: string, answers: Scripted[] = [], file: object = {}) {
  const provider = await startFakeProvider(answers)
  closing.push(() => provider.close())
  const config = join(folder, `config-${Math.random()}.json`)
  writeFileSync(config, JSON.stringify(file))
  const env = {
    SANDLOT_DATA: data,
    ...LOCAL_PROCESS,
    SANDLOT_CONFIG: config,
    OPENAI_MODEL: 'fake',
    OPENAI_API_KEY: 'x',
    OPENAI_BASE_URL: provider.baseUrl,
  }
  const lines: string[] = []
  const write = (fields: unknown, line: string): void => void lines.push(`${line} ${JSON.stringify(fields)}`)
  const agent = await openAgent(
    readAgentConfig(
      builtinTools().map(({ name }) => name),
      env,
    ),
    { info: write, warn: write },
  )
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
  const ask = (what: McpServersAsk, user = ADA) => asked.request(EXT.mcpServers, { user, ask: what })
  const view = async (what: McpServersAsk, user = ADA) => serversView.parse(await ask(what, user))
  return {
    lines,
    leave,
    ask,
    view,
    provider,
    /** The id of the server that is added. */
    async add(of: 'own' | 'deployment', server: ServerRequest, user = of === 'own' ? ADA : ROOT) {
      const { servers } = await view({ ...serverRequest.parse(server), do: 'put', of }, user)
      return servers.find(({ name }) => name === server.name)?.id ?? ''
    },
    async change(
      of: 'own' | 'deployment',
      id: string,
      change: Partial<ServerRequest>,
      user = of === 'own' ? ADA : ROOT,
    ) {
      const { servers } = await view({ do: 'list', of }, user)
      const {
        status: _status,
        hasClientSecret: _has,
        id: _id,
        ...now
      } = servers.find((one) => one.id === id) ?? {}
      return view({ ...serverRequest.parse({ ...now, ...change }), do: 'put', of, id }, user)
    },
    async tried(of: 'own' | 'deployment', id: string, user = of === 'own' ? ADA : ROOT) {
      return serverStatus.parse(await ask({ do: 'test', of, id }, user)).status
    },
    secret: (name: string, value: string, user = ADA) =>
      asked.request(EXT.secrets, { user, ask: { do: 'set', name, value } }),
    settings: (what: SettingsAsk) => asked.request(EXT.settings, { user: ROOT, ask: what }),
    finish: (answer: URLSearchParams, user = ADA) =>
      asked.request(EXT.mcpSignIn, { user, answer: answer.toString() }),
    async session(user = ADA) {
      const { sessionId } = await asked.request(methods.agent.session.new, {
        cwd: '/workspace',
        mcpServers: [],
        _meta: { sandlot: { user, mode: 'yolo' } },
      })
      return {
        says: (text: string) =>
          asked.request(methods.agent.session.prompt, {
            sessionId,
            prompt: [{ type: 'text', text }],
            _meta: { sandlot: { user } },
          }),
      }
    },
    /** Names of tools of the last request to the model that are not built in. */
    offered(): string[] {
      const { tools = [] } = (provider.requests.at(-1)?.body ?? {}) as {
        tools?: { function: { name: string } }[]
      }
      const own = builtinTools().map(({ name }) => name)
      return tools.map((tool) => tool.function.name).filter((name) => !own.includes(name))
    },
  }
}
const newFolder = (): string => mkdtempSync(join(folder, 'data-'))

const http = (name: string, url: string, more: object = {}): ServerRequest => ({
  name,
  connection: { kind: 'http', url, ...more },
})
const program = (name: string, ...args: string[]): ServerRequest => ({
  name,
  connection: { kind: 'sandbox', command: process.execPath, args: [SCRIPT, ...args] },
})
async function httpServer() {
  const server = await startHttpServer()
  closing.push(() => server.close())
  return server
}

describe('a server of the deployment', () => {
  test('is used from the next prompt on, with its header, also after a restart; its values are never shown', async () => {
    const server = await httpServer()
    const data = newFolder()
    const first = await start(data, [
      textAnswer('none'),
      toolCalls([{ id: 'c', name: 'look', args: {} }]),
      textAnswer('done'),
    ])
    const session = await first.session()
    await session.says('before')
    expect(first.offered()).toEqual([])
    const id = await first.add('deployment', {
      ...http('notes', server.url, { headers: ['Authorization'] }),
      values: { named: { Authorization: `Bearer ${TOKEN}` } },
    })
    expect(await first.tried('deployment', id)).toMatchObject({
      state: 'ready',
      tools: [{ name: 'look' }, { name: 'other' }],
    })
    await session.says('after')
    expect(first.offered()).toEqual(['look', 'other'])
    const called = server.seen.filter(({ rpc }) => rpc === 'tools/call')
    expect(called.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${TOKEN}`])
    const view = await first.view({ do: 'list', of: 'deployment' }, ROOT)
    expect(JSON.stringify(view)).not.toContain(TOKEN)
    // For a person it is one of those that they have without adding it.
    expect((await first.view({ do: 'list', of: 'own' })).given).toMatchObject([
      { name: 'notes', place: server.origin, status: { state: 'ready' } },
    ])
    await first.leave()
    expect(first.lines.join()).not.toContain(TOKEN)
    expect(readFileSync(join(data, 'sessions.db')).includes(TOKEN)).toBe(false)

    const second = await start(data, [textAnswer('again'), textAnswer('gone')])
    await (await second.session(BOB)).says('hi')
    expect(second.offered()).toEqual(['look', 'other'])
    await second.view({ do: 'remove', of: 'deployment', id }, ROOT)
    await (await second.session(BOB)).says('hi')
    expect(second.offered()).toEqual([])
    await second.leave()
    // The audit log has both, with names of values only.
    const store = await openSessionStore(join(data, 'sessions.db'))
    closing.push(() => store.close())
    const lines = await store.admin.audit.page({ limit: 10 })
    expect(lines.map(({ who, what, whom }) => [who.id, what, whom.name])).toEqual([
      ['root', 'server_removed', 'notes'],
      ['root', 'server_changed', 'notes'],
    ])
    expect(lines[1]?.after).toMatchObject({ of: 'deployment', values: ['Authorization'] })
    expect(JSON.stringify(lines)).not.toContain(TOKEN)
  })

  test('gets each person’s own secret where a value names one; other references are refused', async () => {
    const server = await httpServer()
    const agent = await start(newFolder())
    await agent.secret('NOTES', 'of-ada')
    await agent.secret('NOTES', 'of-bob', BOB)
    const named = (Authorization: string) => ({
      ...http('notes', server.url, { headers: ['Authorization'] }),
      values: { named: { Authorization } },
    })
    await expect(agent.add('deployment', named('Bearer ${OPENAI_API_KEY}'))).rejects.toThrow(
      'Authorization: A ${…} in a value names a secret of each person',
    )
    await expect(
      agent.add('deployment', {
        name: 'tool',
        connection: { kind: 'sandbox', command: 'x', env: ['KEY'] },
        values: { named: { KEY: '${secret:NOTES}' } },
      }),
    ).rejects.toThrow('cannot go into a sandbox')
    const id = await agent.add('deployment', named('Bearer ${secret:NOTES} $${x}'))
    const sent = () => server.seen.at(-1)?.headers.authorization
    expect((await agent.tried('own', id)).state).toBe('ready')
    expect(sent()).toBe('Bearer of-ada ${x}')
    expect((await agent.tried('own', id, BOB)).state).toBe('ready')
    expect(sent()).toBe('Bearer of-bob ${x}')
    // A plain value is one for all again.
    await agent.change('deployment', id, { values: { named: { Authorization: 'Bearer all' } } })
    expect((await agent.tried('own', id)).state).toBe('ready')
    expect(sent()).toBe('Bearer all')
  })

  test('a person signs out of it and in again; with the server everybody’s tokens of it go', async () => {
    const guarded = await startOAuthServer()
    closing.push(() => guarded.close())
    const data = newFolder()
    const agent = await start(data)
    const id = await agent.add('deployment', http('shared', guarded.url, { auth: { type: 'oauth' } }))
    const signIn = async (user: AgentUser) => {
      await agent.tried('own', id, user)
      const { url } = serverSignIn.parse(await agent.ask({ do: 'sign_in', of: 'own', id }, user))
      expect(await agent.finish(guarded.agree(url), user)).toEqual({ server: 'shared' })
      return agent.tried('own', id, user)
    }
    expect(await signIn(ADA)).toMatchObject({ state: 'ready', signedIn: true })
    expect(await signIn(BOB)).toMatchObject({ state: 'ready', signedIn: true })
    const { given } = await agent.view({ do: 'sign_out', of: 'own', id })
    expect(given.find((one) => one.id === id)?.status).toMatchObject({ state: 'idle', signedIn: false })
    expect(await agent.tried('own', id)).toMatchObject({ state: 'needs_auth', signedIn: false })
    expect(await agent.tried('own', id, BOB)).toMatchObject({ state: 'ready', signedIn: true })
    expect(await signIn(ADA)).toMatchObject({ state: 'ready' })
    await agent.view({ do: 'remove', of: 'deployment', id }, ROOT)
    await agent.leave()
    const store = await openSessionStore(join(data, 'sessions.db'))
    closing.push(() => store.close())
    for (const user of ['ada', 'bob']) expect(await store.people.secrets.names(user)).toEqual([])
  })

  test('its tools are switched off and read only without a new connection; the server off is not used', async () => {
    const server = await httpServer()
    const agent = await start(newFolder(), [textAnswer('1'), textAnswer('2'), textAnswer('3')])
    const id = await agent.add('deployment', http('notes', server.url))
    const session = await agent.session()
    await session.says('hi')
    await agent.change('deployment', id, { off: ['other'], readOnly: ['look'] })
    await session.says('hi')
    expect(agent.offered()).toEqual(['look'])
    expect(server.seen.filter(({ rpc }) => rpc === 'initialize')).toHaveLength(1)
    expect((await agent.tried('deployment', id)).tools.map(({ name }) => name)).toEqual(['look', 'other'])
    const { servers } = await agent.change('deployment', id, { enabled: false })
    expect(servers[0]?.status.state).toBe('off')
    await session.says('hi')
    expect(agent.offered()).toEqual([])
  })

  test('is changed by one administrator at a time, and its values stay with its address', async () => {
    const agent = await start(newFolder())
    const id = await agent.add('deployment', {
      ...http('notes', 'http://127.0.0.1:1/mcp', { headers: ['X-Key'] }),
      values: { named: { 'X-Key': TOKEN } },
    })
    const moved = { connection: { kind: 'http' as const, url: 'http://127.0.0.1:2/mcp', headers: ['X-Key'] } }
    await expect(agent.change('deployment', id, moved)).rejects.toThrow('Enter the values and secrets again')
    await expect(agent.change('deployment', id, { revision: 0, off: ['x'] })).rejects.toThrow(
      'has been changed',
    )
    const { servers } = await agent.change('deployment', id, {
      ...moved,
      values: { named: { 'X-Key': 'new' } },
    })
    expect(servers).toMatchObject([{ revision: 2, connection: { url: 'http://127.0.0.1:2/mcp' } }])
    const two = {
      connection: { kind: 'http' as const, url: 'http://127.0.0.1:2/mcp', headers: ['X-Key', 'Y'] },
    }
    await expect(agent.change('deployment', id, two)).rejects.toThrow('Enter a value for Y.')
    await expect(agent.change('deployment', 'gone', {})).rejects.toThrow()
  })

  test('signs in by itself with the client’s secret, which is kept', async () => {
    const guarded = await startOAuthServer()
    closing.push(() => guarded.close())
    guarded.clients.set('sandlot', TOKEN)
    const agent = await start(newFolder())
    const auth = { type: 'client-credentials' as const, clientId: 'sandlot' }
    await expect(agent.add('deployment', http('machine', guarded.url, { auth }))).rejects.toThrow(
      'Enter the secret of the client.',
    )
    const id = await agent.add('deployment', {
      ...http('machine', guarded.url, { auth }),
      values: { clientSecret: TOKEN },
    })
    expect(await agent.tried('deployment', id)).toMatchObject({ state: 'ready' })
    const { servers } = await agent.change('deployment', id, { off: ['other'] })
    expect(servers).toMatchObject([{ hasClientSecret: true, off: ['other'], status: { state: 'ready' } }])
  })

  test('of the configuration is shown, tried and not edited; its name is taken', async () => {
    const server = await httpServer()
    const agent = await start(newFolder(), [], { mcpServers: { fixed: { url: server.url } } })
    const { given, servers } = await agent.view({ do: 'list', of: 'deployment' }, ROOT)
    expect([servers, given.map(({ name }) => name)]).toEqual([
      [],
      expect.arrayContaining(['fixed', 'flights-mcp']),
    ])
    expect(await agent.tried('deployment', 'configured:fixed')).toMatchObject({ state: 'ready' })
    for (const of of ['own', 'deployment'] as const)
      await expect(agent.add(of, http('Fixed', 'https://example.com/mcp'))).rejects.toThrow(
        'There is a server “fixed” already',
      )
  })

  test('is an administrator’s alone, and a team’s settings say who may use it', async () => {
    const server = await httpServer()
    const agent = await start(newFolder(), [textAnswer('1'), textAnswer('2')])
    for (const what of [{ do: 'list' }, { do: 'remove', id: 'x' }, { do: 'test', id: 'x' }] as const)
      await expect(agent.ask({ ...what, of: 'deployment' })).rejects.toThrow('Only an administrator')
    const id = await agent.add('deployment', http('notes', server.url))
    await agent.settings({
      do: 'put',
      subject: { kind: 'person', id: 'bob' },
      settings: { mcpServers: [] },
      revision: 0,
    })
    await (await agent.session(BOB)).says('hi')
    expect(agent.offered()).toEqual([])
    expect((await agent.view({ do: 'list', of: 'own' }, BOB)).given).toEqual([])
    await expect(agent.tried('own', id, BOB)).rejects.toThrow('no such server')
    await (await agent.session()).says('hi')
    expect(agent.offered()).toEqual(['look', 'other'])
  })
})

describe('a person’s own server', () => {
  test('over HTTP with a sign-in: the person signs in and has its tools, the others do not', async () => {
    const guarded = await startOAuthServer()
    closing.push(() => guarded.close())
    const agent = await start(newFolder(), [
      toolCalls([{ id: 'c', name: 'look', args: {} }]),
      textAnswer('done'),
      textAnswer('none'),
    ])
    await agent.settings({
      do: 'put',
      subject: { kind: 'person', id: 'ada' },
      settings: { ownServers: 'local' },
      revision: 0,
    })
    const id = await agent.add('own', http('mine', guarded.url, { auth: { type: 'oauth' } }))
    expect((await agent.view({ do: 'list', of: 'own' })).servers[0]?.status.state).toBe('idle')
    expect(await agent.tried('own', id)).toMatchObject({ state: 'needs_auth' })
    const { url } = serverSignIn.parse(await agent.ask({ do: 'sign_in', of: 'own', id }))
    // The others have neither it nor its sign-in.
    await expect(agent.tried('own', id, BOB)).rejects.toThrow('no such server')
    expect(await agent.finish(guarded.agree(url), BOB)).toHaveProperty('problem')
    const again = serverSignIn.parse(await agent.ask({ do: 'sign_in', of: 'own', id }))
    expect(await agent.finish(guarded.agree(again.url))).toEqual({ server: 'mine' })
    expect((await agent.view({ do: 'list', of: 'own' })).servers[0]?.status).toMatchObject({
      state: 'ready',
      signedIn: true,
    })
    expect(await agent.tried('own', id)).toMatchObject({
      state: 'ready',
      tools: [{ name: 'look' }, { name: 'other' }],
    })
    await (await agent.session()).says('hi')
    expect(guarded.seen.some(({ rpc }) => rpc === 'tools/call')).toBe(true)
    await (await agent.session(BOB)).says('hi')
    expect(agent.offered()).toEqual([])
    // Another name keeps the sign-in; another address does not.
    await agent.change('own', id, { name: 'renamed' })
    expect(await agent.tried('own', id)).toMatchObject({ state: 'ready' })
  })

  test('is a program in their sandbox, with its variables; one that fails says how', async () => {
    const local = await openLocalSandboxes()
    closing.push(() => local.dispose())
    const store = await openSessionStore(join(newFolder(), 'sessions.db'))
    closing.push(() => store.close())
    const secrets = new Map<string, string>()
    const registry = await ServerRegistry.open({
      rows: store.people.mcpServers,
      secrets: {
        get: async (userId, name) => secrets.get(`${userId} ${name}`),
        set: async (userId, name, value) => {
          if (value === undefined) secrets.delete(`${userId} ${name}`)
          else secrets.set(`${userId} ${name}`, value)
        },
        removeNamed: async (names) => {
          for (const key of secrets.keys())
            if (names.some((name) => key.endsWith(` ${name}`))) secrets.delete(key)
        },
      },
      configured: [],
      may: () => 'public',
      changed: () => bench.mcp.servers.changed(),
      now: Date.now,
      log: { info: () => undefined, warn: () => undefined },
    })
    const sandbox = (userId: string, signal: AbortSignal) => local.sandboxes.acquire(userId, signal)
    const bench = openMcpBench({}, { sandbox, registry })
    closing.push(() => bench.close())
    const add = (server: ServerRequest) => {
      const { values, revision, ...rest } = serverRequest.parse(server)
      return registry.put('own', 'ada', rest, { revision, values })
    }
    const command = { kind: 'sandbox' as const, command: process.execPath, args: [SCRIPT] }
    const connection = { ...command, env: ['WORD'] }
    const id = await add({ name: 'tool', connection, values: { named: { WORD: 'mine' } } })
    expect(bench.mcp.inSandbox('ada', 's') && !bench.mcp.inSandbox('bob', 's')).toBe(true)
    const { forModel } = await batchOf(await bench.tools('ada')).call('environment', {})
    expect(JSON.parse(forModel)).toMatchObject({ env: { WORD: 'mine' } })
    expect((await bench.tools('bob')).listTools()).toEqual([])
    await registry.remove('own', 'ada', id)
    expect((await bench.tools('ada')).listTools()).toEqual([])
    await add({ name: 'missing', connection: { kind: 'sandbox', command: 'no-such-program' } })
    const states = await bench.mcp.states('ada', new AbortController().signal)
    expect(states).toMatchObject([
      { state: 'unavailable', why: expect.stringMatching(/no-such-program.*was not found/) },
    ])
    await store.people.known.remove('ada', 0)
    expect(await store.people.mcpServers.all()).toEqual([])
  })

  test('is not at an address of the deployment’s network, whatever its name resolves to', async () => {
    const server = await httpServer()
    const agent = await start(newFolder())
    for (const url of [
      server.url,
      'http://localhost:1/',
      'http://[::1]:1/',
      'http://169.254.169.254/',
      'http://db.internal/',
    ])
      await expect(agent.add('own', http('inside', url))).rejects.toThrow('is not a public address')
    const resolves = await agent.add(
      'own',
      http('named', `http://localtest.me:${new URL(server.url).port}/mcp`),
    )
    expect((await agent.tried('own', resolves)).state).toBe('unavailable')
    expect(server.seen).toEqual([])
    // Allowed for a while: what was added then is not reached afterwards.
    const subject = { kind: 'person' as const, id: 'ada' }
    await agent.settings({ do: 'put', subject, settings: { ownServers: 'local' }, revision: 0 })
    const id = await agent.add('own', http('inside', server.url))
    expect((await agent.tried('own', id)).state).toBe('ready')
    await agent.settings({ do: 'put', subject, settings: {}, revision: 1 })
    const status = await agent.tried('own', id)
    expect([status.state, status.why]).toEqual(['unavailable', expect.stringContaining('private network')])
    await agent.settings({ do: 'put', subject, settings: { ownServers: 'none' }, revision: 2 })
    const view = await agent.view({ do: 'list', of: 'own' })
    expect([view.may, view.servers.map(({ status: { state } }) => state)]).toEqual(['none', ['off', 'off']])
    await expect(agent.add('own', http('more', 'https://example.com/mcp'))).rejects.toThrow('has not allowed')
  })

  test('bad input: a hanging server, one that is down, a name that exists, too many, a guest', async () => {
    const hanging = await httpServer()
    hanging.intercept = () => true
    const agent = await start(newFolder())
    const subject = { kind: 'person' as const, id: 'ada' }
    await agent.settings({ do: 'put', subject, settings: { ownServers: 'local' }, revision: 0 })
    const down = await agent.add('own', http('down', 'http://127.0.0.1:1/mcp'))
    expect(await agent.tried('own', down)).toMatchObject({
      state: 'unavailable',
      why: expect.stringMatching(/cannot be reached/),
    })
    await expect(agent.add('own', http('DOWN', 'https://example.com/mcp'))).rejects.toThrow('“down” already')
    await expect(agent.add('own', http('a b', 'https://example.com/mcp'))).rejects.toThrow()
    const hangs = await agent.add('own', http('hangs', hanging.url))
    const waits = agent.tried('own', hangs)
    await until(() => hanging.seen.length > 0)
    const { servers } = await agent.view({ do: 'list', of: 'own' })
    expect(servers.find(({ id }) => id === hangs)?.status.state).toBe('connecting')
    for (let index = 2; index < 20; index++)
      await agent.add('own', http(`s${index}`, 'https://example.com/mcp'))
    await expect(agent.add('own', http('s20', 'https://example.com/mcp'))).rejects.toThrow(
      'There can be 20 servers',
    )
    await expect(agent.ask({ do: 'list', of: 'own' }, { id: 'g', role: 'guest', teams: [] })).rejects.toThrow(
      'Guests',
    )
    hanging.intercept = () => false
    await hanging.close()
    expect(await waits).toMatchObject({ state: 'unavailable' })
    closing.splice(closing.indexOf(hanging.close), 1)
  })

  test('gives way to a server of the deployment that gets its name', async () => {
    const server = await httpServer()
    const agent = await start(newFolder(), [textAnswer('1')])
    await agent.add('own', program('notes'))
    await agent.add('deployment', http('notes', server.url))
    expect((await agent.view({ do: 'list', of: 'own' })).servers).toMatchObject([
      {
        status: {
          state: 'unavailable',
          why: expect.stringMatching(/This Sandlot has a server of this name now/),
        },
      },
    ])
    await (await agent.session()).says('hi')
    expect(agent.offered()).toEqual(['look', 'other'])
  })
})
