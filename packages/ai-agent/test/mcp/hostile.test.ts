import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkSchema } from '../../src/mcp/schema-check.ts'
import { createLineReader } from '../../src/mcp/transports/stdio.ts'
import { batchOf, openMcpBench, scripted } from './mcp-bench.ts'
import { idOf } from '../../src/tools/tool.ts'

test('a check that waited for the processor is made again, not given up', async () => {
  const schema = {
    type: 'object',
    properties: { list: { type: 'array', items: { pattern: '^a+$' } } },
  }
  const value = { list: Array.from({ length: 200 }, () => 'a'), more: 1 }
  const stops = Array.from({ length: 3 }, () => `sleep 0.05; kill -STOP $1; sleep 0.3; kill -CONT $1`).join(
    '; ',
  )
  const stopper = spawn('sh', ['-c', stops, 'sh', `${process.pid}`])
  const ended = once(stopper, 'close')
  const answers = new Set<string>()
  for (const until = performance.now() + 1_500; performance.now() < until;)
    answers.add((await checkSchema({ ...schema, additionalProperties: false }, value)).fits)
  await ended
  expect([...answers]).toEqual(['no'])
})

describe.concurrent('a hostile server', () => {
  test('malformed tools do not affect the others; names, descriptions and schemas become legal', async () => {
    await using bench = openMcpBench({ s: scripted('bad-tools') })
    const tools = await bench.tools()
    expect(
      tools
        .listTools()
        .map((tool) => idOf(tool).slice(0, 20))
        .toSorted(),
    ).toEqual([
      's::__proto__',
      's::bomb',
      's::circle',
      `s::${'n'.repeat(17)}`,
      's::reference',
      's::say',
      's::日本 ünï 🙂',
    ])
    for (const { name, description, parameters } of tools.modelTools()) {
      expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
      expect(description.length).toBeLessThanOrEqual(4_000)
      expect(parameters).toMatchObject({ type: 'object', properties: expect.any(Object) as unknown })
    }
    expect(tools.getTool('reference')?.input).toMatchObject({
      parameters: { required: ['q'], properties: { q: { type: 'string' } } },
    })
    const problems = bench.logged.flatMap(({ fields }) => fields['problem'] ?? [])
    expect(problems).toHaveLength(10)
    expect(problems).toContain('"again": it is announced twice')
  })

  test('a circular schema, or a pattern that never ends, does not block', async () => {
    await using bench = openMcpBench({ s: scripted('bad-tools') })
    const batch = batchOf(await bench.tools())
    // The server decides about what we cannot; this one knows neither tool.
    expect(await batch.call('circle', {})).toMatchObject({
      reason: 'invalid_arguments',
      forModel: expect.stringContaining('no tool circle'),
    })
    expect(await batch.call('bomb', { a: `${'a'.repeat(50)}!` })).toMatchObject({
      reason: 'schema_too_slow',
    })
  })

  test('a line on its stdout that is no message is skipped and logged', async () => {
    await using bench = openMcpBench({ s: scripted('garbage') })
    expect(await batchOf(await bench.tools()).call('say', { text: 'x' })).toMatchObject({ forModel: 'x' })
    expect(bench.logged).toContainEqual({
      level: 'warn',
      fields: { server: 's', count: 1, line: 'Welcome to my server!' },
      message: 'an MCP server printed a line that is not a JSON-RPC message',
    })
  })

  test('that never answers is unavailable after the start time-out', async () => {
    await using bench = openMcpBench({ s: scripted('silent', { startTimeoutMs: 1_000 }) })
    expect((await bench.tools()).listTools()).toEqual([])
    const [state] = await bench.mcp.servers.states('u_test', AbortSignal.abort())
    expect(state).toMatchObject({ state: 'unavailable' })
  })

  test('that lists tools endlessly is listed up to the limit', async () => {
    await using bench = openMcpBench({ s: scripted('list-forever') })
    expect((await bench.tools()).listTools()).toHaveLength(64)
  })

  test('a message beyond the limit ends the connection and one call, in bounded memory', async () => {
    await using bench = openMcpBench({ s: scripted() })
    const batch = batchOf(await bench.tools())
    expect(await batch.call('large', { bytes: 50_000_000 })).toMatchObject({
      reason: 'interrupted',
      forModel: expect.stringContaining('it sent a message of more than 8388608 bytes'),
    })
    expect((await bench.tools()).has('s::say')).toBe(true)
  })

  test('a long result is cut for the model and kept whole in the store', async () => {
    await using bench = openMcpBench({ s: scripted() })
    const batch = batchOf(await bench.tools())
    const outcome = await batch.call('large', { bytes: 2_000_000 }, 'long')
    expect(outcome.forModel.length).toBeLessThan(12_000)
    expect(outcome.outputInfo).toMatchObject({ bytes: 2_000_000, truncated: true })
    expect(batch.outputs.get('long')?.length).toBe(2_000_000)
  })

  test('a flood of notifications is taken at a pace; the answer behind it arrives', async () => {
    await using bench = openMcpBench({ s: scripted() })
    const batch = batchOf(await bench.tools())
    expect(await batch.call('flood', { messages: 6_000 })).toMatchObject({ forModel: 'after the flood' })
  })
})

describe('lines', () => {
  test('are the same however their bytes are cut', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.string({ unit: 'grapheme' }).map((line) => line.replaceAll(/[\r\n]/g, '')),
          { maxLength: 8 },
        ),
        fc.array(fc.nat(7), { maxLength: 40 }),
        (lines, cuts) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\r\n`).join(''))
          const reader = createLineReader(10_000)
          const read: string[] = []
          let from = 0
          for (const length of [...cuts, bytes.length]) {
            read.push(...reader.push(bytes.subarray(from, from + length)).map(String))
            from += length
          }
          expect(read).toEqual(lines.filter((line) => line !== ''))
        },
      ),
    )
  })

  test('over the limit throw, also without a line end', () => {
    const reader = createLineReader(10)
    expect(() => reader.push(Buffer.from('12345\n1234567890\n1'))).not.toThrow()
    expect(() => reader.push(Buffer.from('1234567890'))).toThrow('more than 10 bytes')
  })
})
