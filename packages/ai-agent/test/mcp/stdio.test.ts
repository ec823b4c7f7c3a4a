import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isOutcome, metaOf } from '@sandlot/shared/chat/events'
import { describe, expect, test } from 'vitest'
import { SCRIPT, batchOf, isAlive, openMcpBench, scripted, until } from './mcp-bench.ts'
import { idOf } from '../../src/tools/tool.ts'

// Most of what they do is to wait.
describe.concurrent('a server of the deployment', () => {
  test('runs with its declared environment and nothing of the agent’s, in a folder of its own', async () => {
    const env = { TOKEN: '${SECRET_TOKEN}', PLAIN: 'x' }
    await using bench = openMcpBench({ s: scripted('', { env }) }, { env: { SECRET_TOKEN: 'abc-not-ours' } })
    const { forModel } = await batchOf(await bench.tools()).call('environment', {})
    const seen = JSON.parse(forModel) as { env: Record<string, string>; cwd: string }
    expect(Object.keys(seen.env).toSorted()).toEqual(['HOME', 'LANG', 'PATH', 'PLAIN', 'PWD', 'TOKEN'])
    expect(seen.env).toMatchObject({ TOKEN: 'abc-not-ours', PLAIN: 'x', HOME: `${bench.folder}/s` })
    expect(seen.cwd).toBe(`${bench.folder}/s`)
  })

  test('a call gives its result, with arguments checked by the server’s own schema, and says for whom it is', async () => {
    await using bench = openMcpBench({ s: scripted() })
    const batch = batchOf(await bench.tools())
    expect(await batch.call('say', { text: 'a', times: '2' })).toMatchObject({
      status: 'completed',
      forModel: 'a a\n[The argument times was text and was read as the number 2.]',
      data: { server: 's', tool: 'say' },
    })
    expect(await batch.call('say', { tekst: 'a' })).toMatchObject({
      reason: 'invalid_arguments',
      forModel: expect.stringMatching(
        /there is no argument "tekst"; did you mean text\?[^]*"text"[^]*text, times\./,
      ),
    })
    expect(await batch.call('user', {})).toMatchObject({ forModel: 'u_test' })
  })

  test('reports become progress, and keep a call alive beyond its time-out', async () => {
    await using bench = openMcpBench({ s: scripted('', { timeoutMs: 2_000 }) })
    const batch = batchOf(await bench.tools())
    expect(await batch.call('progress', { steps: 4, everyMs: 600 })).toMatchObject({ forModel: 'arrived' })
    const reports = batch.events.flatMap((event) => metaOf(event).progress ?? [])
    expect(reports.at(-1)).toMatchObject({ message: expect.stringMatching(/^step /), total: 4 })
  })

  test('a call without result or progress times out, at last in spite of progress; the server gets a cancellation', async () => {
    await using bench = openMcpBench({ s: scripted('', { timeoutMs: 1_000, maxTimeoutMs: 1_500 }) })
    const batch = batchOf(await bench.tools())
    expect(await batch.call('never', {})).toMatchObject({ status: 'failed', reason: 'timeout' })
    expect(await batch.call('cancelled', {})).toMatchObject({ forModel: '["never"]' })
    expect(await batch.call('progress', { steps: 100, everyMs: 50 })).toMatchObject({ reason: 'timeout' })
  })

  test('a cancelled call ends at once, and the server gets a cancellation', async () => {
    await using bench = openMcpBench({ s: scripted() })
    const batch = batchOf(await bench.tools())
    const calls = [{ id: 'c1', name: 'progress', args: { steps: 1_000 } }]
    const [outcome] = await batch.run(calls, (event) => {
      if (metaOf(event).progress !== undefined) batch.cancelOf('c1').abort('cancelled')
    })
    expect(outcome).toMatchObject({ status: 'failed', reason: 'cancelled' })
    expect(await batch.call('cancelled', {})).toMatchObject({ forModel: '["progress"]' })
  })

  test('what it returns is text for the model and things for the screen; its failures are failures', async () => {
    await using bench = openMcpBench({ s: scripted() })
    const batch = batchOf(await bench.tools())
    expect(await batch.call('everything', {})).toMatchObject({
      status: 'completed',
      forModel: [
        'red',
        '[An image was left out, image/png, 5 bytes: an image has to be a whole PNG, JPEG, GIF or WebP.]',
        '[A recording, audio/wav, 6 bytes.]',
        '[Link: a page <https://example.org/a>]',
        '[file:///b.txt]',
        'inside b',
        '[file:///c.bin: a file, of unknown type, 6 bytes.]',
      ].join('\n'),
      content: [{ content: { type: 'resource_link', uri: 'https://example.org/a' } }],
    })
    expect(await batch.call('fails', {})).toMatchObject({
      reason: 'tool_error',
      forModel: 'the disk is on fire',
    })
    expect(await batch.call('rpc_error', {})).toMatchObject({
      reason: 'tool_error',
      forModel: expect.stringContaining('broken inside'),
    })
    expect(await batch.call('structured', {})).toMatchObject({
      status: 'completed',
      data: { structured: { count: 2 } },
    })
    expect(await batch.call('structured', { wrong: true })).toMatchObject({
      status: 'completed',
      forModel: expect.stringContaining('The call has run, but what it returned cannot be relied on'),
    })
    await using reads = openMcpBench({ s: scripted('', { readOnly: ['structured'] }) })
    expect(await batchOf(await reads.tools()).call('structured', { wrong: true })).toMatchObject({
      reason: 'invalid_output',
    })
    expect(await batch.call('twice', {}, 'twice')).toMatchObject({ forModel: 'first' })
    expect(batch.log.filter((event) => isOutcome(event) && event.toolCallId === 'twice')).toHaveLength(1)
  })

  test('its exit is one outcome with the reason; it is restarted, and offered again', async () => {
    await using bench = openMcpBench({ s: scripted() })
    const batch = batchOf(await bench.tools())
    const [died, beside] = await batch.run([
      { id: 'a', name: 'die', args: {} },
      { id: 'b', name: 'user', args: {} },
    ])
    expect(died).toMatchObject({
      reason: 'interrupted',
      forModel: expect.stringContaining('it ended with code 3, after it said: I have had enough'),
    })
    expect(beside?.status === 'completed' || beside?.reason === 'unavailable').toBe(true)
    expect((await bench.tools()).has('s::say')).toBe(true)
  })

  test('that keeps failing is not offered, costs a prompt no time, and a call of it says why', async () => {
    await using bench = openMcpBench({
      s: { command: 'no-such-command' },
      t: scripted('', { timeoutMs: 2_000 }),
    })
    await bench.tools()
    const tools = await bench.tools()
    expect(tools.has('t::say')).toBe(true)
    expect((await bench.mcp.servers.states('u_test', new AbortController().signal))[0]).toMatchObject({
      name: 's',
      state: 'unavailable',
      why: expect.stringContaining('its command no-such-command was not found'),
    })
    const batch = batchOf(tools)
    await bench.mcp.servers.close()
    expect(await batch.call('say', { text: 'x' })).toMatchObject({ reason: 'unavailable' })
  })

  test('of one user that keeps failing is retried in the background, and offered when it succeeds', async () => {
    const command = `test -f well || exit 1; exec node ${SCRIPT}`
    const config = { command: 'sh', args: ['-c', command], env: { T: '${secret:T}' } }
    await using bench = openMcpBench({ s: config })
    for (let prompt = 0; prompt < 3; prompt++) expect((await bench.tools()).listTools()).toEqual([])
    writeFileSync(`${bench.folder}/s/users/u_test/well`, '')
    await until(async () => (await bench.tools()).has('s::say'))
    expect(await batchOf(await bench.tools()).call('say', { text: 'x' })).toMatchObject({ forModel: 'x' })
  })

  test('a changed list of tools takes effect with the next prompt, and an unchanged one is the same object', async () => {
    await using bench = openMcpBench({ s: scripted() })
    const before = await bench.tools()
    expect(await bench.tools()).toBe(before)
    const bytes = JSON.stringify(before.modelTools())
    await batchOf(before).call('change', {})
    expect(JSON.stringify(before.modelTools())).toBe(bytes)
    await until(async () => (await bench.tools()).has('s::new-one'))
    expect(before.has('s::new-one')).toBe(false)
  })

  test('how many tools there are is logged once for each new list', async () => {
    await using bench = openMcpBench({ s: scripted() })
    const logged = () =>
      bench.logged.flatMap(({ message, fields }) =>
        message === 'an MCP server listed its tools' ? [fields] : [],
      )
    const before = await bench.tools()
    await bench.tools()
    const first = { server: 's', tools: before.listTools().length }
    expect(logged()).toEqual([first])
    await batchOf(before).call('change', {})
    await until(async () => (await bench.tools()).has('s::new-one'))
    expect(logged()).toEqual([first, { server: 's', tools: (await bench.tools()).listTools().length }])
  })

  test('tools come in pages; only those that are wanted are offered; reads are those that are trusted to be', async () => {
    const change = { tools: ['say', 'user', 'gone'], readOnly: ['user'] }
    await using bench = openMcpBench({
      s: scripted('pages', change),
      t: scripted('pages', { readOnly: 'as-announced' }),
    })
    const tools = await bench.tools()
    expect(
      tools
        .listTools()
        .filter((tool) => idOf(tool).startsWith('s::'))
        .map((tool) => [idOf(tool), tool.readOnly]),
    ).toEqual([
      ['s::say', false],
      ['s::user', true],
    ])
    expect(
      tools
        .listTools()
        .filter((tool) => idOf(tool).startsWith('t::') && tool.readOnly)
        .map(idOf),
    ).toEqual(['t::say'])
    expect(tools.listTools()).toHaveLength(26)
    expect(bench.logged).toContainEqual(
      expect.objectContaining({
        fields: {
          server: 's',
          problem: '"gone": it is in the list of tools, but the server has no such tool',
        },
      }),
    )
  })

  test('with the newest revision only is negotiated with; one with an unknown revision is reported', async () => {
    const modern = fileURLToPath(new URL('../../../../mcp/mcp-kit/test/modern-server.ts', import.meta.url))
    const command = { command: 'node', args: ['--conditions=sandlot-source', modern] }
    await using bench = openMcpBench({ s: command, t: scripted('speaks-nothing') })
    const tools = await bench.tools()
    expect(await batchOf(tools).call('say', { text: 'new' })).toMatchObject({ forModel: 'new' })
    const [, state] = await bench.mcp.servers.states('u_test', new AbortController().signal)
    expect(state).toMatchObject({
      state: 'unavailable',
      why: expect.stringContaining('it speaks no revision of MCP that is known here'),
    })
  })

  test('of each user has a home of its own: other users’ servers cannot read it', async () => {
    const config = scripted('', { env: { T: '${secret:T}' } })
    await using bench = openMcpBench({ s: config })
    const homes = []
    for (const user of ['u_ada', '../u_bob']) {
      const { forModel } = await batchOf(await bench.tools(user)).call('environment', {})
      homes.push((JSON.parse(forModel) as { env: { HOME: string } }).env.HOME)
    }
    expect(homes[0]).toBe(`${bench.folder}/s/users/u_ada`)
    expect(homes[1]).toMatch(new RegExp(`^${bench.folder}/s/users/[0-9a-f]{64}$`))
  })

  test('what it prints to its stderr is logged, not all of it, and without its secrets', async () => {
    await using bench = openMcpBench(
      { s: scripted('', { env: { TOKEN: '${T}' } }) },
      { env: { T: 'very-secret-token' } },
    )
    await batchOf(await bench.tools()).call('stderr', { lines: 1_000 })
    await bench.close()
    const lines = bench.logged.filter(({ message }) => message === 'stderr of an MCP server')
    expect(lines.length).toBeLessThanOrEqual(20)
    expect(lines[0]?.fields).toEqual({ server: 's', line: 'line 0 [hidden]' })
    expect(JSON.stringify(bench.logged)).not.toContain('very-secret-token')
    expect(bench.logged).toContainEqual(
      expect.objectContaining({ fields: { server: 's', lines: expect.any(Number) } }),
    )
  })
})

describe.concurrent('no process of a server is left', () => {
  test('when it is closed: not what it started, not what left its group', async () => {
    await using bench = openMcpBench({ s: scripted('stubborn') })
    const { forModel } = await batchOf(await bench.tools()).call('child', {})
    const pids = JSON.parse(forModel) as number[]
    expect(pids.map(isAlive)).toEqual([true, true, true])
    await bench.close()
    expect(pids.map(isAlive)).toEqual([false, false, false])
  })

  test('when the agent is killed', async () => {
    const program = fileURLToPath(new URL('orphan-maker.ts', import.meta.url))
    const agent = spawn(process.execPath, ['--conditions=sandlot-source', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const said = await new Promise<string>((resolve) =>
      agent.stdout.once('data', (bytes: Buffer) => resolve(String(bytes))),
    )
    const [server = 0, child = 0, own = 0] = JSON.parse(said) as number[]
    expect([server, child].map(isAlive)).toEqual([true, true])
    agent.kill('SIGKILL')
    await until(() => !isAlive(server) && !isAlive(child))
    // A process in a session of its own cannot be found by others; it is ended here.
    process.kill(own, 'SIGKILL')
  })
})
