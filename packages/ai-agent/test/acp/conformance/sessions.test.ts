/** The page about ACP as a table, 1.1: the handshake, and the requests about sessions. */
import { expect, test } from 'vitest'
import { textAnswer, toolCalls } from '../../support/fake-provider.ts'
import { SCRIPT } from '../../mcp/mcp-bench.ts'
import { initialized, newSession, text } from '../raw-client.ts'
import { EDITOR, hang, overBothWires } from './bench.ts'

overBothWires((its, wire) => {
  const { code, prompt } = its

  test('initialize comes first', async () => {
    const early = await its.client.call('session/new', { cwd: '/workspace', mcpServers: [] })
    expect(early.error).toMatchObject({ code: -32_600 })
  })

  test('initialize: an unsupported version is answered with ours, never echoed, never an error', async () => {
    for (const protocolVersion of [0, 7, 65_535]) {
      const result = await its.client.request('initialize', { protocolVersion, clientCapabilities: EDITOR })
      expect(result.protocolVersion).toBe(1)
    }
    const { result } = await initialized(its.client, EDITOR)
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
    const made = await its.client.request('session/new', { cwd: '/home/ada', mcpServers: [] })
    expect(made).toMatchObject({
      sessionId: expect.any(String),
      modes: {
        currentModeId: 'auto-edit',
        availableModes: [{ id: 'manual' }, { id: 'auto-edit' }, { id: 'auto' }, { id: 'yolo' }],
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

  test('session/new, load, resume: additional directories are not advertised, and refused rather than dropped', async () => {
    const { result } = await initialized(its.client, EDITOR)
    expect(result.agentCapabilities.sessionCapabilities).not.toHaveProperty('additionalDirectories')
    const sessionId = await newSession(its.client, { additionalDirectories: [] })
    const refused = { error: { code: -32_602, data: { code: 'bad_request' } } }
    for (const method of ['session/new', 'session/load', 'session/resume']) {
      const params = {
        sessionId,
        cwd: '/workspace',
        mcpServers: [],
        additionalDirectories: ['/home/ada/lib'],
      }
      const answer = await its.client.call(method, params)
      expect(answer).toMatchObject(refused)
      expect(answer.error?.message).toContain('leave additionalDirectories out')
    }
  })

  test('session/new: an editor’s folder is recorded; without notices the answer is the model’s alone; SSE is refused', async () => {
    its.provider.add(textAnswer('Hello.'), textAnswer('Again.'))
    const servers = [{ type: 'http', name: 'files', url: 'http://127.0.0.1:9/', headers: [] }]
    const old = { type: 'sse', name: 'old', url: 'http://127.0.0.1:9/', headers: [] }
    expect(
      await its.client.call('session/new', { cwd: '/home/ada/x', mcpServers: [...servers, old] }),
    ).toMatchObject({ error: { code: -32_602, data: { code: 'bad_request' } } })
    const sessionId = await newSession(its.client, { cwd: '/home/ada/x', mcpServers: servers })
    await prompt(sessionId)
    expect(its.client.said(sessionId)).toBe('Hello.')
    await prompt(sessionId)
    expect(its.client.said(sessionId)).toBe('Hello.Again.')
    const { sessions } = await its.client.request('session/list', { cwd: '/home/ada/x' })
    expect(sessions).toMatchObject([{ sessionId, cwd: '/home/ada/x' }])
  })

  test.runIf(wire === 'stdio')(
    'session/new: a program of the editor runs beside it, as if the editor had started it',
    async () => {
      const env = [{ name: 'KEY', value: 'a-key-of-the-editor' }]
      const mcpServers = [{ name: 'mine', command: 'node', args: [SCRIPT], env }]
      const sessionId = await newSession(its.client, { cwd: its.folder.path, mcpServers })
      its.provider.add(toolCalls([{ id: 'e', name: 'environment', args: {} }]), textAnswer('Done.'))
      await its.client.request('session/set_mode', { sessionId, modeId: 'yolo' })
      await prompt(sessionId)
      const result = JSON.stringify(its.provider.requests.at(-1)?.body.messages.at(-1))
      expect(result).toContain(`\\"cwd\\":\\"${its.folder.path}`)
      expect(result).toContain('\\"KEY\\":\\"[hidden]')
      expect(result).toContain('\\"PATH\\":')
      await prompt(sessionId, '/mcp')
      expect(its.client.said(sessionId)).toContain('- mine: ready; ')
      await its.client.request('session/close', { sessionId })
    },
  )

  test('session/load: the whole conversation again, all of it before the response', async () => {
    its.provider.add(
      toolCalls([{ id: 'e1', name: 'echo', args: { value: 'x' } }], { text: 'Look:' }),
      textAnswer('Done.'),
    )
    const sessionId = await newSession(its.client)
    await prompt(sessionId, 'say x')
    const before = its.client.received.length
    const result = await its.client.request('session/load', { sessionId, cwd: '/workspace', mcpServers: [] })
    const since = its.client.received.slice(before)
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
    its.provider.add(textAnswer('One.'), textAnswer('Two.'))
    const sessionId = await newSession(its.client)
    await prompt(sessionId)
    const before = its.client.updates(sessionId).length
    const result = await its.client.request('session/resume', { sessionId, cwd: '/workspace' })
    expect(result).toMatchObject({ modes: {}, configOptions: [{}, {}] })
    const kinds = its.client.kinds(sessionId).slice(before)
    expect(kinds.filter((kind) => kind !== 'available_commands_update')).toEqual([])
    await prompt(sessionId)
    expect(its.provider.requests.at(-1)?.body.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
    ])
    expect(await code('session/resume', { sessionId: 'nobody', cwd: '/workspace' })).toBe(-32_002)
  })

  test('session/list: by folder, a folder that nobody used is empty, a cursor of ours only', async () => {
    const sessionId = await newSession(its.client, { cwd: '/home/ada/listed' })
    const { sessions, nextCursor } = await its.client.request('session/list', { cwd: '/home/ada/listed' })
    expect(sessions).toMatchObject([
      { sessionId, cwd: '/home/ada/listed', updatedAt: expect.stringMatching(/^\d{4}-/) },
    ])
    expect(nextCursor ?? null).toBeNull()
    expect((await its.client.request('session/list', { cwd: '/nobody' })).sessions).toEqual([])
    expect((await its.client.request('session/list', {})).sessions.length).toBeGreaterThan(1)
    expect(await code('session/list', { cursor: '../x' })).toBe(-32_602)
  })

  test('session/list: what is more than a page comes in several, each session once', async () => {
    const cwd = '/home/ada/many'
    const made = await Promise.all(Array.from({ length: 101 }, () => newSession(its.client, { cwd })))
    const listed: string[] = []
    let pages = 0
    for (let cursor: string | null | undefined = ''; cursor != null && pages < 10; pages++) {
      const params = cursor === '' ? { cwd } : { cwd, cursor }
      const page: { sessions: { sessionId: string }[]; nextCursor?: string | null } =
        await its.client.request('session/list', params)
      listed.push(...page.sessions.map(({ sessionId }) => sessionId))
      cursor = page.nextCursor
    }
    expect(pages).toBe(2)
    expect(listed.toSorted()).toEqual(made.toSorted())
  })

  test('session/close: cancels a running prompt as session/cancel does, then frees the session', async () => {
    its.provider.add(hang)
    const sessionId = await newSession(its.client)
    const running = its.client.begin('session/prompt', { sessionId, prompt: text('go') })
    await its.client.until(
      ({ params }) => params?.sessionId === sessionId && params?.update?.content?.text === 'Half',
    )
    await its.client.request('session/close', { sessionId })
    expect(await its.client.response(running)).toMatchObject({ result: { stopReason: 'cancelled' } })
    expect(await code('session/close', { sessionId: 'nobody' })).toBe(-32_002)
    expect((await its.client.request('session/list', {})).sessions).toContainEqual(
      expect.objectContaining({ sessionId }),
    )
  })

  test('session/delete: gone for good, an unknown id succeeds silently', async () => {
    const sessionId = await newSession(its.client)
    for (const id of [sessionId, sessionId, 'nobody'])
      expect(await its.client.request('session/delete', { sessionId: id })).toEqual({})
    expect(await code('session/prompt', { sessionId, prompt: text('hi') })).toBe(-32_002)
  })

  test('session/set_mode: told as current_mode_update with currentModeId', async () => {
    const sessionId = await newSession(its.client)
    await its.client.request('session/set_mode', { sessionId, modeId: 'yolo' })
    await its.client.until(
      ({ params }) => params?.update?.currentModeId === 'yolo' && params.sessionId === sessionId,
    )
    expect(await code('session/set_mode', { sessionId, modeId: 'wild' })).toBe(-32_602)
    expect(await code('session/set_mode', { sessionId: 'nobody', modeId: 'yolo' })).toBe(-32_002)
  })

  test('session/set_config_option: answers the complete list', async () => {
    const sessionId = await newSession(its.client)
    const set = (configId: string, value: unknown, more: object = {}) =>
      its.client.call('session/set_config_option', { sessionId, configId, value, ...more })
    expect((await set('mode', 'manual')).result.configOptions).toMatchObject([
      { id: 'mode', currentValue: 'manual' },
      { id: 'model', currentValue: 'fake' },
    ])
    expect((await set('model', 'fake')).result.configOptions).toHaveLength(2)
    for (const wrong of [await set('mode', 'wild'), await set('model', 'gpt-x'), await set('nothing', 'x')])
      expect(wrong.error?.code).toBe(-32_602)
  })

  test('session/set_config_option: no boolean option for a client that does not know them', async () => {
    const sessionId = await newSession(its.client)
    const params = { sessionId, configId: 'mode', type: 'boolean', value: true }
    expect(await code('session/set_config_option', params)).toBe(-32_602)
    const made = await its.client.request('session/new', { cwd: '/workspace', mcpServers: [] })
    for (const option of made.configOptions) expect(option.type).toBe('select')
  })

  test('_anything: an unknown request is -32601, an unknown notification is ignored', async () => {
    its.client.notify('_zed/whatever', { a: 1 })
    its.client.notify('qwen/notify', { a: 1 })
    expect(await code('_zed/whatever', { a: 1 })).toBe(-32_601)
    expect(await code('session/fork', { sessionId: 'x' })).toBe(-32_601)
  })

  test('sessions of another connection: the same local user, the same sessions', async () => {
    its.provider.add(textAnswer('Hello.'))
    const sessionId = await newSession(its.client)
    const other = await its.another()
    await initialized(other)
    const prompting = prompt(sessionId)
    await prompting
    await other.request('session/load', { sessionId, cwd: '/workspace', mcpServers: [] })
    expect(other.said(sessionId)).toBe('Hello.')
  })
})
