/** The page about ACP as a table, 1.2 and 1.3: messages to a client. */
import { beforeAll, expect, test } from 'vitest'
import { textAnswer, toolCalls } from '../../support/fake-provider.ts'
import { initialized, newSession, text } from '../raw-client.ts'
import { EDITOR, PRICE, overBothWires } from './bench.ts'

overBothWires((its) => {
  const { prompt } = its

  beforeAll(async () => void (await initialized(its.client, EDITOR)))

  test('user_message_chunk: not the echo of the client’s own prompt', async () => {
    its.provider.add(textAnswer('Hello.'))
    const sessionId = await newSession(its.client)
    expect(await prompt(sessionId)).toEqual({ stopReason: 'end_turn' })
    expect(its.client.kinds(sessionId)).not.toContain('user_message_chunk')
  })

  test('agent_message_chunk and agent_thought_chunk: each piece once, without ours', async () => {
    its.provider.add(textAnswer('Hello there, Ada.', { reasoning: 'She greets me.', pieceLength: 3 }))
    const sessionId = await newSession(its.client)
    await prompt(sessionId)
    const thoughts = its.client
      .updates(sessionId)
      .filter((update) => update.sessionUpdate === 'agent_thought_chunk')
    expect(thoughts.map((update) => update.content.text).join('')).toBe('She greets me.')
    expect(its.client.said(sessionId)).toBe('Hello there, Ada.')
    expect(JSON.stringify(its.client.updates(sessionId))).not.toContain('sandlot')
  })

  test('tool_call and tool_call_update: title, kind, status, raw input and output, absolute locations', async () => {
    its.provider.add(
      toolCalls([
        { id: 'r1', name: 'read_file', args: { path: 'src/a.ts' } },
        { id: 'r2', name: 'echo', args: { value: 'said' } },
      ]),
      textAnswer('ok'),
    )
    const sessionId = await newSession(its.client)
    await prompt(sessionId)
    const of = (id: string) => its.client.updates(sessionId).filter((update) => update.toolCallId === id)
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
    const said: unknown = expect.stringContaining('"value":"said"')
    expect(of('r2').at(-1)).toMatchObject({
      rawOutput: { forModel: said, data: { value: 'said', type: 'string', bytes: 6 } },
      content: [{ type: 'content', content: { type: 'text', text: said } }],
    })
  })

  test('plan: the complete list each time', async () => {
    const entries = [
      { content: 'Look', priority: 'high', status: 'completed' },
      { content: 'Mend', priority: 'medium', status: 'in_progress' },
    ]
    its.provider.add(toolCalls([{ id: 'p1', name: 'update_plan', args: { entries } }]), textAnswer('ok'))
    const sessionId = await newSession(its.client)
    await prompt(sessionId)
    const plans = its.client.updates(sessionId).filter((update) => update.sessionUpdate === 'plan')
    expect(plans.map((update) => update.entries)).toEqual([entries])
  })

  test('available_commands_update: behind the answer to session/new; each command works, without the model', async () => {
    const id = its.client.begin('session/new', { cwd: '/workspace', mcpServers: [] })
    const sessionId = (await its.client.response(id)).result.sessionId as string
    const told = await its.client.until(
      ({ params }) =>
        params?.sessionId === sessionId && params?.update?.sessionUpdate === 'available_commands_update',
    )
    const answer = its.client.received.findIndex(
      (message) => message.id === id && message.method === undefined,
    )
    expect(its.client.received.indexOf(told)).toBeGreaterThan(answer)
    const commands: { name: string; description: string }[] = told.params.update.availableCommands
    expect(commands.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['mode', 'usage', 'mcp', 'compact']),
    )

    const asked = its.provider.requests.length
    expect(await prompt(sessionId, '/mode')).toMatchObject({ stopReason: 'end_turn' })
    await prompt(sessionId, '/mode yolo')
    await prompt(sessionId, '/mode wild')
    await prompt(sessionId, '/usage')
    await prompt(sessionId, '/mcp')
    await prompt(sessionId, '/compact')
    expect(its.client.said(sessionId)).toMatch(
      /auto-edit.*The mode is yolo\..*no mode “wild”.*tokens.*no MCP servers.*nothing to compact/s,
    )
    expect(its.client.kinds(sessionId)).toContain('config_option_update')
    expect(its.provider.requests.length).toBe(asked)
    its.provider.add(textAnswer('A path.'))
    await prompt(sessionId, '/etc/hosts, what is it?')
    expect(its.client.said(sessionId)).toMatch(/A path\.$/)
  })

  test('current_mode_update and config_option_update: both, whoever changed the mode', async () => {
    const sessionId = await newSession(its.client)
    await its.client.request('session/set_config_option', { sessionId, configId: 'mode', value: 'yolo' })
    const told = await its.client.until(
      ({ params }) =>
        params?.sessionId === sessionId && params.update.sessionUpdate === 'config_option_update',
    )
    expect(told.params.update.configOptions).toMatchObject([
      { id: 'mode', currentValue: 'yolo' },
      { id: 'model' },
    ])
    expect(its.client.kinds(sessionId)).toContain('current_mode_update')
  })

  test('session_info_update: the title and the time', async () => {
    its.provider.add(textAnswer('Hello.'))
    const sessionId = await newSession(its.client)
    await prompt(sessionId, 'What is the weather?')
    const infos = its.client
      .updates(sessionId)
      .filter((update) => update.sessionUpdate === 'session_info_update')
    expect(infos).toMatchObject([
      { title: 'What is the weather?', updatedAt: expect.stringMatching(/^\d{4}-.*Z$/) },
    ])
    const { sessions } = await its.client.request('session/list', {})
    expect(sessions).toContainEqual(expect.objectContaining({ sessionId, title: 'What is the weather?' }))
  })

  test('usage_update: tokens in the context, and the size of the window', async () => {
    its.provider.add(textAnswer('Hello.', { usage: { prompt_tokens: 40, completion_tokens: 2 } }))
    const sessionId = await newSession(its.client)
    await prompt(sessionId)
    const usage = its.client.updates(sessionId).find((update) => update.sessionUpdate === 'usage_update')
    expect(usage).toMatchObject({ used: 42, size: expect.any(Number) })
  })

  test('notice: what no model has said, for a client that shows notices', async () => {
    const one = await its.another()
    await initialized(one, { ...EDITOR, session: { notices: {} } })
    const mcpServers = [
      { type: 'http', name: 'old', url: 'ftp://127.0.0.1:9/', headers: [] },
      { type: 'http', name: 'files', url: 'http://127.0.0.1:9/', headers: [] },
    ]
    const sessionId = await newSession(one, { cwd: '/home/ada/x', mcpServers })
    its.provider.add(textAnswer('Hello.'))
    await one.request('session/prompt', { sessionId, prompt: text('hi') })
    expect(one.said(sessionId)).toBe('Hello.')
    const notices = one.updates(sessionId).filter(({ sessionUpdate }) => sessionUpdate === 'notice')
    const notice = { sessionUpdate: 'notice', severity: 'warning', description: expect.any(String) }
    expect(notices).toEqual([
      {
        sessionUpdate: 'notice',
        severity: 'info',
        title: expect.stringMatching(/not see .*\/home\/ada\/x$/),
      },
      { ...notice, title: 'The MCP server “old” cannot be used' },
      { ...notice, title: 'The MCP server “files” cannot be used' },
    ])
    // They are no part of the history.
    await one.request('session/load', { sessionId, cwd: '/home/ada/x', mcpServers: [] })
    expect(one.kinds(sessionId).filter((kind) => kind === 'notice')).toHaveLength(3)
  })

  test('usage_update: what the session has cost so far, with its currency', async () => {
    const usage = { prompt_tokens: 1_000, completion_tokens: 500 }
    its.provider.add(textAnswer('One.', { usage }), textAnswer('Two.', { usage }))
    const sessionId = await newSession(its.client)
    await prompt(sessionId)
    await prompt(sessionId)
    const costs = its.client
      .updates(sessionId)
      .flatMap(({ sessionUpdate, cost }) => (sessionUpdate === 'usage_update' ? [cost] : []))
    const each = PRICE.input / 1_000 + PRICE.output / 2_000
    expect(costs).toEqual([each, 2 * each].map((amount) => ({ amount, currency: 'USD' })))
  })

  test.each(['terminal_output', 'terminal_output_delta'])(
    'live shell output: a client that asks for %s gets it under that name, another gets text',
    async (wanted) => {
      const told = async (id: string, _meta: object) => {
        await initialized(its.client, { ...EDITOR, _meta })
        const sessionId = await newSession(its.client)
        await its.client.request('session/set_mode', { sessionId, modeId: 'yolo' })
        const run = { id, name: 'run_shell_command', args: { command: 'make' } }
        its.provider.add(toolCalls([run]), textAnswer('ok'))
        await prompt(sessionId)
        return its.client.updates(sessionId).filter(({ toolCallId }) => toolCallId === id)
      }
      // The command never ran: what is shown of it is why.
      const shown = expect.stringContaining('No Docker engine answers')
      const terminal = { terminal_id: 'asked' }
      const asked = await told('asked', { [wanted]: true })
      expect(asked[0]).toMatchObject({
        content: [{ type: 'terminal', terminalId: 'asked' }],
        _meta: { terminal_info: terminal },
      })
      expect(asked.at(-1)._meta).toEqual({
        [wanted]: { ...terminal, data: shown },
        terminal_exit: { ...terminal, exit_code: null, signal: null },
      })

      const plain = await told('plain', {})
      expect(JSON.stringify(plain)).not.toContain('terminal')
      expect(plain.at(-1).content).toMatchObject([{ content: { text: shown } }])
    },
  )
})
