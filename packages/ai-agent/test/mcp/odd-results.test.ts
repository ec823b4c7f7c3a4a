/** Results as servers really send them: the call has run, so an odd part loses only itself. */
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RawResults } from '../../src/mcp/transports/raw-results.ts'
import type { TestBatch } from '../calls/test-batch.ts'
import { startHttpServer } from './http-server.ts'
import { batchOf, openMcpBench, scripted } from './mcp-bench.ts'

const GOOD = { type: 'text', text: 'the answer is 42' }
const NOTHING = 'The call succeeded and returned nothing.'
const LEFT_OUT = '[Left out of this result: '
const deep = JSON.parse('['.repeat(500) + ']'.repeat(500)) as unknown
const beside = (...parts: unknown[]): object => ({ content: [GOOD, ...parts] })

/** The result, what the model reads of it, and what it is told was left out. */
const ODD: [name: string, result: unknown, says: string, leftOut?: string][] = [
  ['an unknown block', beside({ type: 'json', json: { a: 1 } }), GOOD.text, 'the unknown type "json"'],
  ['a text without text', beside({ type: 'text' }), GOOD.text, 'type "text" that is not complete'],
  ['a text that is null', beside({ type: 'text', text: null }), GOOD.text, 'type "text"'],
  ['a text that is an object', beside({ type: 'text', text: {} }), GOOD.text, 'type "text"'],
  ['a text that is a number', beside({ type: 'text', text: 7 }), 'the answer is 42\n7'],
  [
    'a link without a name',
    beside({ type: 'resource_link', uri: 'https://example.org/x' }),
    'the answer is 42\n[Link:  <https://example.org/x>]',
  ],
  [
    'a link without an address',
    beside({ type: 'resource_link', name: 'x' }),
    GOOD.text,
    'type "resource_link"',
  ],
  ['structured content that is a list', { ...beside(), structuredContent: [1, 2] }, GOOD.text, 'no object'],
  ['structured content that is a number', { ...beside(), structuredContent: 3 }, GOOD.text, 'no object'],
  ['structured content that is null', { ...beside(), structuredContent: null }, GOOD.text],
  ['only a list as structured content', { structuredContent: [1] }, '[\n  1\n]'],
  ['structured content that is very deep', { ...beside(), structuredContent: deep }, GOOD.text, 'nested'],
  ['a block that is very deep', beside(deep, { type: 'x', x: deep }), GOOD.text, '"x"'],
  ['no content', {}, NOTHING],
  ['content that is null', { content: null }, NOTHING],
  ['content that is a text', { content: GOOD.text }, GOOD.text],
  ['content that is one block', { content: GOOD }, GOOD.text],
  ['content that is a number', { content: 42 }, '42'],
  ['texts in place of blocks', { content: [GOOD.text, null, 3] }, 'the answer is 42\n3', 'no block'],
  ['a block without a type', beside({ a: 1 }), GOOD.text, 'a block without a type'],
  ['a text without a type', { content: [{ text: GOOD.text }] }, GOOD.text],
  ['a type that is no text', beside({ type: 1 }), GOOD.text, 'a block without a type'],
  ['members of an earlier revision', { toolResult: { a: 1 } }, '{\n  "toolResult": {\n    "a": 1\n  }\n}'],
  ['a result that is a text', GOOD.text, GOOD.text],
  ['a result that is a list of blocks', [GOOD], GOOD.text],
  ['a result that is null', null, NOTHING],
  ['a failure in words: no', { ...beside(), isError: 'false' }, GOOD.text],
  ['a failure that is null', { ...beside(), isError: null }, GOOD.text],
  [
    'an image without a type',
    beside({ type: 'image', data: 'aGVsbG8=' }),
    'the answer is 42\n[An image was left out, of unknown type, 5 bytes: an image has to be a whole PNG, JPEG, GIF or WebP.]',
  ],
  [
    'an image that is not in base 64',
    beside({ type: 'image', mimeType: 'image/png', data: '<svg>' }),
    'the answer is 42\n[An image was left out, image/png, 3 bytes: an image has to be a whole PNG, JPEG, GIF or WebP.]',
  ],
  ['an image without data', beside({ type: 'image', mimeType: 'image/png' }), GOOD.text, 'type "image"'],
  [
    'a recording without a type',
    beside({ type: 'audio', data: 'aGVsbG8=' }),
    'the answer is 42\n[A recording, of unknown type, 6 bytes.]',
  ],
  [
    'a file without an address',
    beside({ type: 'resource', resource: { text: 'inside' } }),
    'the answer is 42\n[A file without a name]\ninside',
  ],
  [
    'a file with nothing in it',
    beside({ type: 'resource', resource: { uri: 'a' } }),
    GOOD.text,
    '"resource"',
  ],
  ['a file that is a text', beside({ type: 'resource', resource: 'a' }), GOOD.text, '"resource"'],
  ['odd notes', { ...beside(), _meta: 'x', annotations: 1, more: [] }, GOOD.text],
  ['a progress token that is none', { ...beside(), _meta: { progressToken: {} } }, GOOD.text],
  ['annotations that are none', { content: [{ ...GOOD, annotations: 'x', _meta: 3 }] }, GOOD.text],
  ['a result type of no revision', { ...beside(), resultType: 5 }, GOOD.text],
  [
    'many odd blocks',
    beside(...Array.from({ length: 3 }, () => ({ type: 'x' }))),
    GOOD.text,
    '"x" (3 times)',
  ],
]

type Way = 'a pipe' | 'one JSON' | 'a stream'

async function withResult(
  way: Way,
  result: unknown,
  use: (batch: TestBatch) => Promise<void>,
): Promise<void> {
  if (way === 'a pipe') {
    await using bench = openMcpBench({ s: scripted('', { tools: ['raw'] }) })
    await use(batchOf(await bench.tools()))
    return
  }
  await using server = await startHttpServer()
  server.intercept = (_request, response, message) => {
    if (message?.method !== 'tools/call') return false
    const answer = JSON.stringify({ jsonrpc: '2.0', id: message.id, error: null, result })
    const type = way === 'a stream' ? 'text/event-stream' : 'application/json'
    response.writeHead(200, { 'content-type': type })
    response.end(way === 'a stream' ? `: hi\n\nid: 1\nevent: message\ndata: ${answer}\n\n` : answer)
    return true
  }
  await using bench = openMcpBench({ s: { url: server.url } })
  await use(batchOf(await bench.tools()))
}

describe.each<Way>(['a pipe', 'one JSON', 'a stream'])('over %s', (way) => {
  test.each(ODD)('%s', async (_, result, says, leftOut) => {
    await withResult(way, result, async (batch) => {
      const tool = way === 'a pipe' ? 'raw' : 'look'
      const outcome = await batch.call(tool, { json: JSON.stringify(result) })
      expect(outcome).toMatchObject({ status: 'completed' })
      const [said = '', note] = outcome.forModel.split(LEFT_OUT)
      expect(said.trim()).toBe(says)
      if (leftOut === undefined) expect(note).toBeUndefined()
      else expect(note).toContain(leftOut)
    })
  })

  test('a failure in words is a failure', async () => {
    const result = { ...beside(), isError: 'true' }
    await withResult(way, result, async (batch) => {
      const outcome = await batch.call(way === 'a pipe' ? 'raw' : 'look', {
        json: JSON.stringify(result),
      })
      expect(outcome).toMatchObject({ status: 'failed', reason: 'tool_error', forModel: GOOD.text })
    })
  })
})

test('a result in a stream is found however its bytes are cut, and nothing else is changed', async () => {
  const result = { content: [{ type: 'text', text: 'ü\n\n“' }] }
  const others = [': ping\r\n\r\n', 'data: {"jsonrpc":"2.0","method":"n","params":{"result":1}}\n\n']
  const answer = `id: 7\r\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: 3, result })}\r\n\r\n`
  const bytes = Buffer.from([...others, answer, others[0] ?? '', 'data: cut'].join(''))
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 60 }), async (cuts) => {
      const raw = new RawResults()
      raw.sent({ jsonrpc: '2.0', id: 3, method: 'tools/call', params: {} })
      let from = 0
      const pieces = [...cuts, bytes.length].map((length) => bytes.subarray(from, (from += length)))
      const stream = Readable.toWeb(Readable.from(pieces)) as ReadableStream<Uint8Array>
      const headers = { 'content-type': 'text/event-stream' }
      const text = await raw.ofResponse(new Response(stream, { headers })).text()
      const [before = '', after = ''] = text.split('id: 7\n')
      expect(before).toBe(others.join(''))
      const [data = '', ...rest] = after.split('\n\n')
      expect(rest.join('\n\n')).toBe(`${others[0] ?? ''}data: cut`)
      const message = JSON.parse(data.replace('data: ', '')) as { result: object }
      expect(raw.take(message.result)).toEqual(result)
    }),
  )
})
