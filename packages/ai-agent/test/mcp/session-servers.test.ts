import { describe, expect, test } from 'vitest'
import type { ClientServer } from '../../src/mcp/session-servers.ts'
import { startHttpServer } from './http-server.ts'
import { SCRIPT, batchOf, isAlive, openMcpBench, scripted, until } from './mcp-bench.ts'
import { idOf } from '../../src/tools/tool.ts'

const ADA = 'u_ada'
const patience = new AbortController().signal
const script = (name: string, env: Record<string, string> = {}): ClientServer => ({
  name,
  command: 'node',
  args: [SCRIPT],
  env,
  where: 'deployment',
})

describe.concurrent('servers that an editor names for a session', () => {
  test('have their tools in that session of that user, besides the deployment’s, and end with it', async () => {
    await using web = await startHttpServer()
    await using bench = openMcpBench({ notes: { url: web.url, tools: ['look'] } }, { env: { KEY: 'ours' } })
    const brought = bench.mcp.setSessionServers(ADA, 's_1', [
      script('My Tools!', { KEEP: '${KEY} ${secret:T}' }),
      { name: 'Notes', url: web.url, headers: { 'X-Key': '${KEY}' } },
      { name: 'far', url: 'ftp://example.org', headers: {} },
    ])
    expect(brought).toEqual([
      { name: 'My Tools!', as: 'My-Tools-' },
      // The deployment's own name is not to be had, and with it not its rules.
      { name: 'Notes', as: 'Notes-2' },
      { name: 'far', problem: expect.stringContaining('must be an address') },
    ])
    const mine = await bench.mcp.toolsOf(ADA, patience, 's_1')
    expect([mine.has('notes::look'), mine.has('Notes-2::look'), mine.has('My-Tools-::say')]).toEqual([
      true,
      true,
      true,
    ])
    for (const others of [
      await bench.mcp.toolsOf(ADA, patience, 's_2'),
      await bench.mcp.toolsOf('u_bob', patience, 's_1'),
      await bench.mcp.toolsOf(ADA, patience),
    ])
      expect(others.listTools().map(idOf)).toEqual(['notes::look'])

    const batch = batchOf(mine)
    // Its text is not filled in: the agent's environment and users' secrets stay where they are.
    const { forModel } = await batch.call('environment', {})
    expect(JSON.parse(forModel)).toMatchObject({ env: { KEEP: '${KEY} ${secret:T}' } })
    await batch.call('Notes_2_look', {})
    expect(web.seen.findLast(({ rpc }) => rpc === 'tools/call')?.headers['x-key']).toBe('${KEY}')

    const [pid = 0] = JSON.parse((await batch.call('child', {})).forModel) as number[]
    expect(isAlive(pid)).toBe(true)
    await bench.mcp.closeSession('s_1')
    expect(isAlive(pid)).toBe(false)
    expect((await bench.mcp.toolsOf(ADA, patience, 's_1')).has('My-Tools-::say')).toBe(false)
  })

  test('named again: the same ones keep running, others replace them', async () => {
    await using bench = openMcpBench({})
    const pidOf = async (): Promise<number> => {
      const batch = batchOf(await bench.mcp.toolsOf(ADA, patience, 's_1'))
      return (JSON.parse((await batch.call('child', {})).forModel) as number[])[0] ?? 0
    }
    bench.mcp.setSessionServers(ADA, 's_1', [script('a')])
    const first = await pidOf()
    bench.mcp.setSessionServers(ADA, 's_1', [script('a')])
    expect(await pidOf()).toBe(first)
    bench.mcp.setSessionServers(ADA, 's_1', [script('b')])
    const tools = await bench.mcp.toolsOf(ADA, patience, 's_1')
    expect([tools.has('a::say'), tools.has('b::say')]).toEqual([false, true])
  })

  test('replaced ones end when they are unused, and at the latest with the agent', async () => {
    await using bench = openMcpBench({})
    const child = async (): Promise<number> => {
      const batch = batchOf(await bench.mcp.toolsOf(ADA, patience, 's_1'))
      return (JSON.parse((await batch.call('child', {})).forModel) as number[])[0] ?? 0
    }
    bench.mcp.setSessionServers(ADA, 's_1', [script('a')])
    const [unused, first] = [Promise.withResolvers<void>(), await child()]
    bench.mcp.setSessionServers(ADA, 's_1', [script('a', { NEW: '1' })], () => unused.promise)
    const second = await child()
    expect([isAlive(first), second === first]).toEqual([true, false])
    unused.resolve()
    await until(() => !isAlive(first))
    bench.mcp.setSessionServers(ADA, 's_1', [], () => new Promise(() => undefined))
    expect(isAlive(second)).toBe(true)
    await bench.mcp.close()
    expect(isAlive(second)).toBe(false)
  })

  test('one that cannot be started has no tools and says why; the others are there', async () => {
    await using bench = openMcpBench({ s: scripted() })
    const gone = { ...script('gone'), command: '/no/such/program' }
    // The test's deployment has no sandboxes.
    const inside = { ...script('inside'), where: 'sandbox' as const }
    bench.mcp.setSessionServers(ADA, 's_1', [gone, inside])
    expect((await bench.mcp.toolsOf(ADA, patience, 's_1')).has('s::say')).toBe(true)
    expect(await bench.mcp.states(ADA, patience, 's_1')).toMatchObject([
      { name: 's', state: 'ready' },
      { name: 'gone', state: 'unavailable', why: 'its command /no/such/program was not found' },
      { name: 'inside', state: 'unavailable', why: 'There is no sandbox here.' },
    ])
  })
})
