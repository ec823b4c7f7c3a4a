/** Results as servers really send them: the call has run, so an odd part loses only itself. */
import { Readable } from 'node:stream'
import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RawResults } from '../../src/mcp/transports/raw-results.ts'
import type { TestBatch } from '../calls/test-batch.ts'
import { startHttpServer } from './http-server.ts'
import { batchOf, openMcpBench, scripted } from './mcp-bench.ts'

const GOOD = { type: 'text', text: 'the answer is 42' }
const NOTHING = 'The call succeeded and returned nothing.'
const LEFT_OUT = '[Left out of this result: '
/** Sent with these digits. */
const LONG = { 'sandlot/number': '12345678901234567890' }
const deep = JSON.parse('['.repeat(500) + ']'.repeat(500)) as unknown
const beside = (...parts: unknown[]): object => ({ content: [GOOD, ...parts] })

/** The result, its text for the model, and the parts that are reported as left out. */
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
  ['a failure that is an object', { ...beside(), isError: { toString: 1 } }, GOOD.text],
  ['a number of many digits', { content: [12, { text: LONG }] }, `12\n${LONG['sandlot/number']}`],
  ['odd notes', { ...beside(), _meta: 'x', annotations: 1, more: [] }, GOOD.text],
  ['a progress token that is none', { ...beside(), _meta: { progressToken: {} } }, GOOD.text],
  ['annotations that are none', { content: [{ ...GOOD, annotations: 'x', _meta: 3 }] }, GOOD.text],
  ['a result type of no revision', { ...beside(), resultType: 5 }, GOOD.text],
  [
    'very many blocks',
    beside(...Array.from({ length: 10_000 }, () => ({ type: 'x' }))),
    GOOD.text,
    '"x" (9999 times), all but the first 10000 blocks',
  ],
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
    const answer = stringifyExactly({ jsonrpc: '2.0', id: message.id, error: null, result }) ?? ''
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
      const outcome = await batch.call(tool, { json: stringifyExactly(result) })
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

test.each<[string, unknown, string]>([
  ['without a code', { message: 'no such city' }, 'look failed: no such city'],
  ['that is a text', 'no such city', 'look failed: no such city'],
  [
    'with a code that is a text',
    { code: 'E1', message: 'no such city', data: {} },
    'look failed: no such city',
  ],
  ['without words', { code: -1, reason: 5 }, 'look failed: {"code":-1,"reason":5}'],
])('an error %s is the answer', async (_, error, says) => {
  await using server = await startHttpServer()
  server.intercept = (_request, response, message) => {
    if (message?.method !== 'tools/call') return false
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }))
    return true
  }
  await using bench = openMcpBench({ s: { url: server.url } })
  const outcome = await batchOf(await bench.tools()).call('look', {})
  expect(outcome).toMatchObject({ status: 'failed', reason: 'tool_error', forModel: says })
})

test('a stream stays the same events however it is cut, with each result as it came', async () => {
  const result = (value: string): string =>
    `{"content":[{"type":"text","text":"ü\\n\\n“"}],"structuredContent":{"id":${value}}}`
  const others = [
    ': ping',
    'event: x\ndata: {"jsonrpc":"2.0","method":"n","params":{"result":1}}',
    'retry: 10',
    'data: no JSON',
  ]
  const drawn = fc.tuple(
    fc.constantFrom('\n', '\r\n', '\r'),
    fc.oneof(fc.constantFrom(...others), fc.constantFrom(1234567890123456789n, -5n, 2n ** 90n)),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(drawn),
      fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 60 }),
      async (parts, cuts) => {
        const raw = new RawResults()
        const events = parts.map(([, part], id) => {
          if (typeof part === 'string') return part
          raw.sent({ jsonrpc: '2.0', id, method: 'tools/call', params: {} })
          return `id: ${id}\ndata: {"jsonrpc":"2.0","id":${id},\ndata: "result":${result(String(part))}}`
        })
        const sent = parts.map(([line], place) => `${events[place]}\n\n`.replaceAll('\n', line)).join('')
        const bytes = Buffer.from(`${sent}data: cut`)
        let from = 0
        const pieces = [...cuts, bytes.length].map((length) => bytes.subarray(from, (from += length)))
        const fetch = raw.fetch(async () => {
          const stream = Readable.toWeb(Readable.from(pieces)) as ReadableStream<Uint8Array>
          return new Response(stream, { headers: { 'content-type': 'Text/Event-Stream; charset=utf-8' } })
        })
        const read = (await (await fetch('http://localhost/')).text()).split(/(?:\r\n|\n|\r(?!\n)){2}/)
        expect(read.pop()?.trim()).toBe('data: cut')
        expect(read).toHaveLength(parts.length)
        for (const [place, text] of read.entries()) {
          const data =
            text
              .split(/\r\n|\n|\r/)
              .findLast((line) => line.startsWith('data: '))
              ?.slice(6) ?? ''
          const event = events[place] ?? ''
          if (!event.startsWith('id: '))
            expect(
              text
                .trim()
                .split(/\r\n|\n|\r/)
                .join('\n'),
            ).toBe(event)
          else
            expect(stringifyExactly(raw.take((JSON.parse(data) as { result: object }).result))).toBe(
              result(String(parts[place]?.[1])),
            )
        }
      },
    ),
  )
})
