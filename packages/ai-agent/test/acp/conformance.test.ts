/**
 * The page about ACP as a table: one test for each of its rows that is about an agent, named after it, over both real
 * wires. Rows about tools that need a sandbox are in conformance.engine.test.ts, rows about the end of a process in
 * stdio-end.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFolder } from '../agent-process.ts'
import {
  type FakeProvider,
  deltaChunk,
  sse,
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../fake-provider.ts'
import { SCRIPT } from '../mcp/mcp-bench.ts'
import { type RawClient, initialized, newSession, overSocket, overStdio, text } from './raw-client.ts'

/** An editor that could do everything, so that what is not asked of it is not asked by choice. */
const EDITOR = {
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true,
}

const hang = { steps: [sse(deltaChunk({ content: 'Half' }))], after: 'hang' } as const
const shell = (id: string) => toolCalls([{ id, name: 'run_shell_command', args: { command: 'make' } }])

/** A PNG of one pixel. */
const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

describe.each(['stdio', 'socket'] as const)('ACP v1 over %s', { timeout: 60_000 }, (wire) => {
  let folder: AgentFolder
  let provider: FakeProvider
  let client: RawClient
  /** Another client, where the wire has room for one. */
  let another: () => Promise<RawClient>

  beforeAll(async () => {
    folder = new AgentFolder()
    provider = await startFakeProvider()
    const env = {
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: 'sk-a-secret-of-the-test',
      OPENAI_MODEL: 'fake',
      SANDLOT_MAX_TURNS: '3',
    }
    const agent = folder.start(env, wire === 'stdio' ? ['--stdio'] : [])
    await agent.logged('the agent is ready')
    another = () => overSocket(folder)
    client = wire === 'stdio' ? overStdio(agent) : await another()
  }, 60_000)

  afterAll(async () => {
    await folder[Symbol.asyncDispose]()
    await provider.close()
  })

  const prompt = (sessionId: string, words = 'hi') =>
    client.request('session/prompt', { sessionId, prompt: text(words) })
  const code = async (method: string, params: object): Promise<number | undefined> =>
    (await client.call(method, params)).error?.code

  // ── 1.1 client → agent ────────────────────────────────────────────────────────────────────────────────

  test('initialize comes first', async () => {
    const early = await client.call('session/new', { cwd: '/workspace', mcpServers: [] })
    expect(early.error).toMatchObject({ code: -32_600 })
  })

  test('initialize: an unsupported version is answered with ours, never echoed, never an error', async () => {
    for (const protocolVersion of [0, 7, 65_535]) {
      const result = await client.request('initialize', { protocolVersion, clientCapabilities: EDITOR })
      expect(result.protocolVersion).toBe(1)
    }
    const { result } = await initialized(client, EDITOR)
    expect(result).toMatchObject({
      protocolVersion: 1,
      agentInfo: { name: 'sandlot', title: 'Sandlot' },
      authMethods: [],
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: true, sse: false },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      },
    })
  })

  test('authenticate: there is no method, so every one is refused', async () => {
    expect(await code('authenticate', { methodId: 'agent' })).toBe(-32_602)
  })

  test('logout: not advertised, not there', async () => {
    expect(await code('logout', {})).toBe(-32_601)
  })

  test('session/new: an id, modes, config options; cwd absolute; mcpServers required', async () => {
    const made = await client.request('session/new', { cwd: '/home/ada', mcpServers: [] })
    expect(made).toMatchObject({
      sessionId: expect.any(String),
      modes: {
        currentModeId: 'auto-edit',
        availableModes: [{ id: 'manual' }, { id: 'auto-edit' }, { id: 'yolo' }],
      },
      configOptions: [
        { id: 'mode', category: 'mode', type: 'select', currentValue: 'auto-edit' },
        {
          id: 'model',
          category: 'model',
          type: 'select',
          currentValue: 'fake',
          options: [{ value: 'fake' }],
        },
      ],
    })
    expect(await code('session/new', { cwd: 'home/ada', mcpServers: [] })).toBe(-32_602)
    expect(await code('session/new', { cwd: '/home/ada' })).toBe(-32_602)
  })

  test('session/new: an editor’s folder is recorded, and the first answer says that it is not seen, and which MCP server cannot be used', async () => {
    provider.add(textAnswer('Hello.'), textAnswer('Again.'))
    const servers = [
      { type: 'sse', name: 'old', url: 'http://127.0.0.1:9/', headers: [] },
      { type: 'http', name: 'files', url: 'http://127.0.0.1:9/', headers: [] },
    ]
    const sessionId = await newSession(client, { cwd: '/home/ada/x', mcpServers: servers })
    await prompt(sessionId)
    expect(client.said(sessionId)).toMatch(
      /^\([^)]*\/home\/ada\/x\. [^)]*“old” cannot be used[^)]*\)\n\n\([^\n]*“files” cannot be used: [^\n]*\)\n\nHello\.$/,
    )
    await prompt(sessionId)
    expect(client.said(sessionId)).toMatch(/Hello\.Again\.$/)
    const { sessions } = await client.request('session/list', { cwd: '/home/ada/x' })
    expect(sessions).toMatchObject([{ sessionId, cwd: '/home/ada/x' }])
  })

  test.runIf(wire === 'stdio')(
    'session/new: a program of the editor runs beside it, as if the editor had started it',
    async () => {
      const env = [{ name: 'KEY', value: 'a-key-of-the-editor' }]
      const mcpServers = [{ name: 'mine', command: 'node', args: [SCRIPT], env }]
      const sessionId = await newSession(client, { cwd: folder.path, mcpServers })
      provider.add(toolCalls([{ id: 'e', name: 'environment', args: {} }]), textAnswer('Done.'))
      await client.request('session/set_mode', { sessionId, modeId: 'yolo' })
      await prompt(sessionId)
      const result = JSON.stringify(provider.requests.at(-1)?.body.messages.at(-1))
      expect(result).toContain(`\\"cwd\\":\\"${folder.path}`)
      expect(result).toContain('\\"KEY\\":\\"[hidden]')
      expect(result).toContain('\\"PATH\\":')
      await prompt(sessionId, '/mcp')
      expect(client.said(sessionId)).toContain('- mine: ready; ')
      await client.request('session/close', { sessionId })
    },
  )

  test('session/load: the whole conversation again, all of it before the response', async () => {
    provider.add(
      toolCalls([{ id: 'e1', name: 'echo', args: { text: 'x' } }], { text: 'Look:' }),
      textAnswer('Done.'),
    )
    const sessionId = await newSession(client)
    await prompt(sessionId, 'say x')
    const before = client.received.length
    const result = await client.request('session/load', { sessionId, cwd: '/workspace', mcpServers: [] })
    const since = client.received.slice(before)
    const answeredAt = since.findIndex(({ result: answer }) => answer !== undefined)
    const kinds = since
      .slice(0, answeredAt)
      .filter(({ params }) => params?.sessionId === sessionId)
      .map(({ params }) => params.update.sessionUpdate as string)
    expect(kinds).toEqual([
      'session_info_update',
      'user_message_chunk',
      'agent_message_chunk',
      'usage_update',
      'tool_call',
      'tool_call_update',
      'tool_call_update',
      'agent_message_chunk',
      'usage_update',
    ])
    expect(result).toEqual({
      modes: expect.any(Object),
      configOptions: [{}, {}].map(() => expect.any(Object)),
    })
    expect(await code('session/load', { sessionId: 'nobody', cwd: '/workspace', mcpServers: [] })).toBe(
      -32_002,
    )
    expect(await code('session/load', { sessionId, cwd: 'x', mcpServers: [] })).toBe(-32_602)
  })

  test('session/resume: as load without replay, mcpServers optional', async () => {
    provider.add(textAnswer('One.'), textAnswer('Two.'))
    const sessionId = await newSession(client)
    await prompt(sessionId)
    const before = client.updates(sessionId).length
    const result = await client.request('session/resume', { sessionId, cwd: '/workspace' })
    expect(result).toMatchObject({ modes: {}, configOptions: [{}, {}] })
    const kinds = client.kinds(sessionId).slice(before)
    expect(kinds.filter((kind) => kind !== 'available_commands_update')).toEqual([])
    await prompt(sessionId)
    expect(provider.requests.at(-1)?.body.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
    ])
    expect(await code('session/resume', { sessionId: 'nobody', cwd: '/workspace' })).toBe(-32_002)
  })

  test('session/list: by folder, a folder that nobody used is empty, a cursor of ours only', async () => {
    const sessionId = await newSession(client, { cwd: '/home/ada/listed' })
    const { sessions, nextCursor } = await client.request('session/list', { cwd: '/home/ada/listed' })
    expect(sessions).toMatchObject([
      { sessionId, cwd: '/home/ada/listed', updatedAt: expect.stringMatching(/^\d{4}-/) },
    ])
    expect(nextCursor ?? null).toBeNull()
    expect((await client.request('session/list', { cwd: '/nobody' })).sessions).toEqual([])
    expect((await client.request('session/list', {})).sessions.length).toBeGreaterThan(1)
    expect(await code('session/list', { cursor: '../x' })).toBe(-32_602)
  })

  test('session/close: cancels a running prompt as session/cancel does, then frees the session', async () => {
    provider.add(hang)
    const sessionId = await newSession(client)
    const running = client.begin('session/prompt', { sessionId, prompt: text('go') })
    await client.until(
      ({ params }) => params?.sessionId === sessionId && params?.update?.content?.text === 'Half',
    )
    await client.request('session/close', { sessionId })
    expect(await client.response(running)).toMatchObject({ result: { stopReason: 'cancelled' } })
    expect(await code('session/close', { sessionId: 'nobody' })).toBe(-32_002)
    expect((await client.request('session/list', {})).sessions).toContainEqual(
      expect.objectContaining({ sessionId }),
    )
  })

  test('session/delete: gone for good, an unknown id succeeds silently', async () => {
    const sessionId = await newSession(client)
    for (const id of [sessionId, sessionId, 'nobody'])
      expect(await client.request('session/delete', { sessionId: id })).toEqual({})
    expect(await code('session/prompt', { sessionId, prompt: text('hi') })).toBe(-32_002)
  })

  test('session/set_mode: told as current_mode_update with currentModeId', async () => {
    const sessionId = await newSession(client)
    await client.request('session/set_mode', { sessionId, modeId: 'yolo' })
    await client.until(
      ({ params }) => params?.update?.currentModeId === 'yolo' && params.sessionId === sessionId,
    )
    expect(await code('session/set_mode', { sessionId, modeId: 'wild' })).toBe(-32_602)
    expect(await code('session/set_mode', { sessionId: 'nobody', modeId: 'yolo' })).toBe(-32_002)
  })

  test('session/set_config_option: answers the complete list', async () => {
    const sessionId = await newSession(client)
    const set = (configId: string, value: unknown, more: object = {}) =>
      client.call('session/set_config_option', { sessionId, configId, value, ...more })
    expect((await set('mode', 'manual')).result.configOptions).toMatchObject([
      { id: 'mode', currentValue: 'manual' },
      { id: 'model', currentValue: 'fake' },
    ])
    expect((await set('model', 'fake')).result.configOptions).toHaveLength(2)
    for (const wrong of [await set('mode', 'wild'), await set('model', 'gpt-x'), await set('nothing', 'x')])
      expect(wrong.error?.code).toBe(-32_602)
  })

  test('session/set_config_option: no boolean option for a client that does not know them', async () => {
    const sessionId = await newSession(client)
    const params = { sessionId, configId: 'mode', type: 'boolean', value: true }
    expect(await code('session/set_config_option', params)).toBe(-32_602)
    const made = await client.request('session/new', { cwd: '/workspace', mcpServers: [] })
    for (const option of made.configOptions) expect(option.type).toBe('select')
  })

  test('session/prompt: pending for the whole prompt; text, resource_link and an embedded resource', async () => {
    provider.add(textAnswer('Read.'))
    const sessionId = await newSession(client)
    const blocks = [
      { type: 'text', text: 'Look at' },
      { type: 'resource_link', name: 'a.md', uri: 'file:///workspace/a.md' },
      {
        type: 'resource',
        resource: { uri: 'file:///workspace/b.md', mimeType: 'text/markdown', text: '# B' },
      },
    ]
    const answer = await client.request('session/prompt', { sessionId, prompt: blocks })
    expect(answer).toMatchObject({ stopReason: 'end_turn' })
    const asked = String(provider.requests.at(-1)?.body.messages.at(-1)?.content)
    for (const part of ['Look at', 'file:///workspace/a.md', 'file:///workspace/b.md', '# B'])
      expect(asked).toContain(part)
    const audio = { type: 'audio', data: '', mimeType: 'audio/wav' }
    for (const wrong of [[], text(' '), [audio]])
      expect(await code('session/prompt', { sessionId, prompt: wrong })).toBe(-32_602)
    expect(await code('session/prompt', { sessionId: 'nobody', prompt: text('hi') })).toBe(-32_002)
  })

  test('session/prompt: an image goes to the model, its echo does not come back, a load shows it again', async () => {
    provider.add(textAnswer('A dot.'))
    const sessionId = await newSession(client)
    const image = { type: 'image', mimeType: 'image/png', data: DOT }
    const blob = { uri: 'file:///a.png', mimeType: 'image/png', blob: image.data }
    const prompt = [...text('What is it?'), image, { type: 'resource', resource: blob }]
    await client.request('session/prompt', { sessionId, prompt })
    const content = JSON.stringify(provider.requests.at(-1)?.body.messages.at(-1)?.content)
    expect(content.split(`data:image/png;base64,${DOT}`)).toHaveLength(3)
    expect(client.kinds(sessionId)).not.toContain('user_message_chunk')
    await client.request('session/load', { sessionId, cwd: '/workspace', mcpServers: [] })
    const shown = client.updates(sessionId).filter((update) => update.sessionUpdate === 'user_message_chunk')
    expect(shown.map((update) => update.content.type)).toEqual(['text', 'image', 'image'])
    for (const wrong of [
      { ...image, data: DOT.slice(0, 40) },
      { ...image, data: 'no image' },
    ])
      expect(await code('session/prompt', { sessionId, prompt: [wrong] })).toBe(-32_602)
  })

  test('session/cancel: the prompt ends cancelled, never as an error, and the session goes on', async () => {
    provider.add(hang, textAnswer('Here.'))
    const sessionId = await newSession(client)
    const running = client.begin('session/prompt', { sessionId, prompt: text('go') })
    await client.until(
      ({ params }) => params?.sessionId === sessionId && params?.update?.content?.text === 'Half',
    )
    client.notify('session/cancel', { sessionId })
    expect(await client.response(running)).toMatchObject({ result: { stopReason: 'cancelled' } })
    client.notify('session/cancel', { sessionId })
    expect(await prompt(sessionId)).toMatchObject({ stopReason: 'end_turn' })
  })

  test('$/cancel_request: a prompt is answered with a valid result', async () => {
    provider.add(hang)
    const sessionId = await newSession(client)
    const running = client.begin('session/prompt', { sessionId, prompt: text('go') })
    await client.until(
      ({ params }) => params?.sessionId === sessionId && params?.update?.content?.text === 'Half',
    )
    client.notify('$/cancel_request', { requestId: running })
    client.notify('$/cancel_request', { requestId: 'nobody' })
    expect(await client.response(running)).toMatchObject({ result: { stopReason: 'cancelled' } })
  })

  test('_anything: an unknown request is -32601, an unknown notification is ignored', async () => {
    client.notify('_zed/whatever', { a: 1 })
    client.notify('qwen/notify', { a: 1 })
    expect(await code('_zed/whatever', { a: 1 })).toBe(-32_601)
    expect(await code('session/fork', { sessionId: 'x' })).toBe(-32_601)
  })

  // ── 1.2 session/update, 1.3 calls ─────────────────────────────────────────────────────────────────────

  test('user_message_chunk: not the echo of the client’s own prompt', async () => {
    provider.add(textAnswer('Hello.'))
    const sessionId = await newSession(client)
    expect(await prompt(sessionId)).toEqual({ stopReason: 'end_turn' })
    expect(client.kinds(sessionId)).not.toContain('user_message_chunk')
  })

  test('agent_message_chunk and agent_thought_chunk: each piece once, without ours', async () => {
    provider.add(textAnswer('Hello there, Ada.', { reasoning: 'She greets me.', pieceLength: 3 }))
    const sessionId = await newSession(client)
    await prompt(sessionId)
    const thoughts = client
      .updates(sessionId)
      .filter((update) => update.sessionUpdate === 'agent_thought_chunk')
    expect(thoughts.map((update) => update.content.text).join('')).toBe('She greets me.')
    expect(client.said(sessionId)).toBe('Hello there, Ada.')
    expect(JSON.stringify(client.updates(sessionId))).not.toContain('sandlot')
  })

  test('tool_call and tool_call_update: title, kind, status, raw input and output, absolute locations', async () => {
    provider.add(
      toolCalls([
        { id: 'r1', name: 'read_file', args: { path: 'src/a.ts' } },
        { id: 'r2', name: 'echo', args: { text: 'said' } },
      ]),
      textAnswer('ok'),
    )
    const sessionId = await newSession(client)
    await prompt(sessionId)
    const of = (id: string) => client.updates(sessionId).filter((update) => update.toolCallId === id)
    expect(of('r1')[0]).toMatchObject({
      sessionUpdate: 'tool_call',
      title: expect.stringContaining('src/a.ts'),
      name: 'read_file',
      kind: 'read',
      status: 'pending',
      rawInput: { path: 'src/a.ts' },
      locations: [{ path: '/workspace/src/a.ts' }],
    })
    expect(of('r1').at(-1)).toMatchObject({ sessionUpdate: 'tool_call_update', status: 'failed' })
    expect(of('r2').map((update) => update.status)).toEqual(['pending', 'in_progress', 'completed'])
    expect(of('r2').at(-1)).toMatchObject({
      rawOutput: { forModel: 'said' },
      content: [{ type: 'content', content: { type: 'text', text: 'said' } }],
    })
  })

  test('plan: the complete list each time', async () => {
    const entries = [
      { content: 'Look', priority: 'high', status: 'completed' },
      { content: 'Mend', priority: 'medium', status: 'in_progress' },
    ]
    provider.add(toolCalls([{ id: 'p1', name: 'update_plan', args: { entries } }]), textAnswer('ok'))
    const sessionId = await newSession(client)
    await prompt(sessionId)
    const plans = client.updates(sessionId).filter((update) => update.sessionUpdate === 'plan')
    expect(plans.map((update) => update.entries)).toEqual([entries])
  })

  test('available_commands_update: behind the answer to session/new; each command works, without the model', async () => {
    const id = client.begin('session/new', { cwd: '/workspace', mcpServers: [] })
    const sessionId = (await client.response(id)).result.sessionId as string
    const told = await client.until(
      ({ params }) =>
        params?.sessionId === sessionId && params?.update?.sessionUpdate === 'available_commands_update',
    )
    const answer = client.received.findIndex((message) => message.id === id && message.method === undefined)
    expect(client.received.indexOf(told)).toBeGreaterThan(answer)
    const commands: { name: string; description: string }[] = told.params.update.availableCommands
    expect(commands.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['mode', 'usage', 'mcp', 'compact']),
    )

    const asked = provider.requests.length
    expect(await prompt(sessionId, '/mode')).toMatchObject({ stopReason: 'end_turn' })
    await prompt(sessionId, '/mode yolo')
    await prompt(sessionId, '/mode wild')
    await prompt(sessionId, '/usage')
    await prompt(sessionId, '/mcp')
    await prompt(sessionId, '/compact')
    expect(client.said(sessionId)).toMatch(
      /auto-edit.*The mode is yolo\..*no mode “wild”.*tokens.*no MCP servers.*nothing to compact/s,
    )
    expect(client.kinds(sessionId)).toContain('config_option_update')
    expect(provider.requests.length).toBe(asked)
    provider.add(textAnswer('A path.'))
    await prompt(sessionId, '/etc/hosts, what is it?')
    expect(client.said(sessionId)).toMatch(/A path\.$/)
  })

  test('current_mode_update and config_option_update: both, whoever changed the mode', async () => {
    const sessionId = await newSession(client)
    await client.request('session/set_config_option', { sessionId, configId: 'mode', value: 'yolo' })
    const told = await client.until(
      ({ params }) =>
        params?.sessionId === sessionId && params.update.sessionUpdate === 'config_option_update',
    )
    expect(told.params.update.configOptions).toMatchObject([
      { id: 'mode', currentValue: 'yolo' },
      { id: 'model' },
    ])
    expect(client.kinds(sessionId)).toContain('current_mode_update')
  })

  test('session_info_update: the title and the time', async () => {
    provider.add(textAnswer('Hello.'))
    const sessionId = await newSession(client)
    await prompt(sessionId, 'What is the weather?')
    const infos = client.updates(sessionId).filter((update) => update.sessionUpdate === 'session_info_update')
    expect(infos).toMatchObject([
      { title: 'What is the weather?', updatedAt: expect.stringMatching(/^\d{4}-.*Z$/) },
    ])
    const { sessions } = await client.request('session/list', {})
    expect(sessions).toContainEqual(expect.objectContaining({ sessionId, title: 'What is the weather?' }))
  })

  test('usage_update: tokens in the context, and the size of the window', async () => {
    provider.add(textAnswer('Hello.', { usage: { prompt_tokens: 40, completion_tokens: 2 } }))
    const sessionId = await newSession(client)
    await prompt(sessionId)
    const usage = client.updates(sessionId).find((update) => update.sessionUpdate === 'usage_update')
    expect(usage).toMatchObject({ used: 42, size: expect.any(Number) })
  })

  // ── 1.4 permission, stop reasons, errors ──────────────────────────────────────────────────────────────

  test('session/request_permission: the call as it is and options by id; what is selected is done', async () => {
    provider.add(shell('a1'), textAnswer('not done'))
    const sessionId = await newSession(client)
    client.on('session/request_permission', () => ({
      outcome: { outcome: 'selected', optionId: 'reject_once' },
    }))
    await prompt(sessionId)
    const asked = client.asked.findLast(({ method }) => method === 'session/request_permission')
    expect(asked?.params).toMatchObject({
      sessionId,
      toolCall: { toolCallId: 'a1', kind: 'execute', status: 'pending', rawInput: { command: 'make' } },
    })
    const options: { optionId: string; kind: string; name: string }[] = asked?.params.options
    expect(new Set(options.map(({ optionId }) => optionId)).size).toBe(options.length)
    for (const { kind, name } of options) {
      expect(['allow_once', 'allow_always', 'reject_once', 'reject_always']).toContain(kind)
      expect(name).not.toBe('')
    }
    const outcome = client.updates(sessionId).findLast((update) => update.toolCallId === 'a1')
    expect(outcome).toMatchObject({ status: 'failed' })
    expect(JSON.stringify(provider.requests.at(-1)?.body.messages.at(-1))).toContain('did not allow')
  })

  test('session/request_permission: “cancelled” is no permission, and neither is an error', async () => {
    for (const id of ['a2', 'a3']) {
      provider.add(shell(id), textAnswer('ok'))
      const sessionId = await newSession(client)
      client.on('session/request_permission', () =>
        id === 'a2'
          ? { outcome: { outcome: 'cancelled' } }
          : { outcome: { outcome: 'selected', optionId: 'no such' } },
      )
      expect(await prompt(sessionId)).toMatchObject({ stopReason: 'end_turn' })
      expect(client.updates(sessionId).findLast((update) => update.toolCallId === id)).toMatchObject({
        status: 'failed',
      })
    }
  })

  test('on session/cancel an open request is withdrawn and the call ends failed', async () => {
    provider.add(shell('a4'))
    const sessionId = await newSession(client)
    client.on('session/request_permission', () => undefined)
    const running = client.begin('session/prompt', { sessionId, prompt: text('go') })
    const asked = await client.until(
      ({ method, params }) => method === 'session/request_permission' && params.sessionId === sessionId,
    )
    client.notify('session/cancel', { sessionId })
    await client.until(({ method, params }) => method === '$/cancel_request' && params.requestId === asked.id)
    client.sendText(
      JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: { outcome: { outcome: 'cancelled' } } }),
    )
    expect(await client.response(running)).toMatchObject({ result: { stopReason: 'cancelled' } })
    expect(client.updates(sessionId).findLast((update) => update.toolCallId === 'a4')).toMatchObject({
      status: 'failed',
    })
  })

  test('stop reasons: end_turn, max_tokens, max_turn_requests, refusal; a broken model is end_turn with a sentence', async () => {
    const scripts = [
      [[textAnswer('Hi.')], 'end_turn'],
      [[textAnswer('Half of', { finish: 'length' })], 'max_tokens'],
      [
        ['s1', 's2', 's3'].map((id) => toolCalls([{ id, name: 'echo', args: { text: id } }])),
        'max_turn_requests',
      ],
      [[textAnswer('', { finish: 'content_filter' })], 'refusal'],
      [
        [
          {
            status: 401,
            headers: { 'content-type': 'application/json' },
            steps: ['{"error":{"message":"bad key"}}'],
          },
        ],
        'end_turn',
      ],
    ] as const
    for (const [script, stopReason] of scripts) {
      provider.add(...script)
      const sessionId = await newSession(client)
      expect(await prompt(sessionId)).toMatchObject({ stopReason })
      expect(client.said(sessionId)).not.toBe('')
    }
  })

  test('errors: a stable code and a safe text; no stack, no path, no secret', async () => {
    const wrong = [
      await client.call('session/prompt', { sessionId: 'nobody', prompt: text('hi') }),
      await client.call('session/new', { cwd: 7, mcpServers: 'none' }),
      await client.call('session/load', {}),
      await client.call('_sandlot/approve', { sessionId: 'nobody' }),
    ]
    expect(wrong.map(({ error }) => error?.code)).toEqual([-32_002, -32_602, -32_602, -32_602])
    expect(JSON.stringify(wrong)).not.toMatch(/node_modules|\.ts\b|\bat .*:\d+|sk-a-secret/)
  })

  // ── 2 what bites ──────────────────────────────────────────────────────────────────────────────────────

  test('2.1 updates are in order and all before the response', async () => {
    const words = Array.from({ length: 200 }, (_, index) => `w${index} `).join('')
    provider.add(textAnswer(words, { pieceLength: 4 }))
    const sessionId = await newSession(client)
    const id = client.begin('session/prompt', { sessionId, prompt: text('count') })
    const answer = await client.response(id)
    expect(client.said(sessionId)).toBe(words)
    const last = client.received.findLastIndex(({ params }) => params?.sessionId === sessionId)
    expect(client.received.indexOf(answer)).toBeGreaterThan(last)
  })

  test('2.8 a batch is one -32600, a bad line is answered at once and repeats nothing, and the rest goes on', async () => {
    provider.add(hang)
    const sessionId = await newSession(client)
    const running = client.begin('session/prompt', { sessionId, prompt: text('go') })
    const bad = (): unknown[] => client.received.filter(({ id }) => id === null)
    const secret = 'my-own-secret'
    const lines = [
      `[{"jsonrpc":"2.0","id":900,"method":"session/list","params":{}},{"jsonrpc":"2.0","id":901,"method":"x"}]`,
      `{"jsonrpc":"2.0","id":902,"method":"session/list"`,
      `"${secret}"`,
      `{"id":903,"method":"session/list","token":"${secret}"}`,
      `{"jsonrpc":"2.0","id":{"a":1},"method":"session/list"}`,
    ]
    for (const [index, line] of lines.entries()) {
      client.sendText(line)
      await client.until(() => bad().length === index + 1)
    }
    expect(bad()).toMatchObject(
      [-32_600, -32_700, -32_600, -32_600, -32_600].map((wrong) => ({ error: { code: wrong } })),
    )
    expect(JSON.stringify(bad())).not.toContain(secret)
    expect(client.received.some(({ id }) => id === 900 || id === 901)).toBe(false)
    client.notify('session/cancel', { sessionId })
    expect(await client.response(running)).toMatchObject({ result: { stopReason: 'cancelled' } })
  })

  test('sessions of another connection: the same local user, the same sessions', async () => {
    provider.add(textAnswer('Hello.'))
    const sessionId = await newSession(client)
    const other = await another()
    await initialized(other)
    const prompting = prompt(sessionId)
    await prompting
    await other.request('session/load', { sessionId, cwd: '/workspace', mcpServers: [] })
    expect(other.said(sessionId)).toBe('Hello.')
  })

  // Last: it is about all that was sent.
  test('fs/* and terminal/*: never called, whatever the client could do; every message is JSON-RPC 2.0', () => {
    expect(new Set(client.asked.map(({ method }) => method))).toEqual(new Set(['session/request_permission']))
    for (const message of client.received) expect(message.jsonrpc).toBe('2.0')
    const notified = client.received.filter(({ id }) => id === undefined).map(({ method }) => method)
    expect(new Set(notified)).toEqual(new Set(['session/update', '$/cancel_request']))
    const kinds = client.received.flatMap(({ method, params }) =>
      method === 'session/update' ? [params.update.sessionUpdate] : [],
    )
    for (const kind of ['notice', 'compaction_update', 'compaction_summary_chunk'])
      expect(kinds).not.toContain(kind)
  })
})
