import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { batchOf, openMcpBench } from './mcp-bench.ts'

const require = createRequire(import.meta.url)
const programOf = (name: string): string =>
  join(dirname(require.resolve(`${name}/package.json`)), 'dist/index.js')
const EVERYTHING = programOf('@modelcontextprotocol/server-everything')

describe('server-everything, a server of the first line', () => {
  test('over stdio: tools, errors, structure, images, progress', async () => {
    await using bench = openMcpBench({
      every: { command: 'node', args: [EVERYTHING, 'stdio'], readOnly: 'as-announced' },
    })
    const tools = await bench.tools()
    const batch = batchOf(tools)
    expect(tools.listTools().length).toBeGreaterThan(8)
    expect(await batch.call('echo', { message: 'hello' })).toMatchObject({ forModel: 'Echo: hello' })
    expect(await batch.call('get_sum', { a: 2, b: '3' })).toMatchObject({
      forModel: expect.stringContaining('5'),
    })
    expect(await batch.call('get_sum', { a: 'two', b: 3 })).toMatchObject({ reason: 'invalid_arguments' })
    expect(await batch.call('get_structured_content', { location: 'New York' })).toMatchObject({
      status: 'completed',
      data: { structured: {} },
    })
    expect(await batch.call('get_tiny_image', {})).toMatchObject({
      content: [{ content: { type: 'image' } }],
    })
    expect(await batch.call('trigger_long_running_operation', { duration: 1, steps: 4 })).toMatchObject({
      status: 'completed',
    })
    expect(batch.events.some((event) => JSON.stringify(event).includes('"progress"'))).toBe(true)
  })

  test('over HTTP, in a session', async () => {
    const probe = createServer().listen(0, '127.0.0.1')
    await once(probe, 'listening')
    const { port } = probe.address() as AddressInfo
    probe.close()
    await once(probe, 'close')
    const env = { PATH: process.env['PATH'] ?? '', PORT: String(port) }
    const server = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    try {
      for await (const bytes of server.stderr) if (String(bytes).includes('listening')) break
      await using bench = openMcpBench({ every: { url: `http://127.0.0.1:${port}/mcp` } })
      expect(await batchOf(await bench.tools()).call('echo', { message: 'hello' })).toMatchObject({
        forModel: 'Echo: hello',
      })
    } finally {
      server.kill('SIGKILL')
    }
  })
})
