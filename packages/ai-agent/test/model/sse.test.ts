import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SseParser, SseTooLargeError } from '../../src/model/sse.ts'
import type { SseEvent } from '../../src/model/sse.ts'

function parse(pieces: readonly (string | Uint8Array)[]): SseEvent[] {
  const events: SseEvent[] = []
  const parser = new SseParser((event) => void events.push(event))
  const encoder = new TextEncoder()
  for (const piece of pieces) parser.push(typeof piece === 'string' ? encoder.encode(piece) : piece)
  parser.end()
  return events
}

const data = (...texts: string[]): SseEvent[] =>
  texts.map((text) => ({ event: '', data: text, complete: true }))

describe('bug 15: event streams as they are', () => {
  test.each<[string, string, SseEvent[]]>([
    ['plain', 'data: a\n\ndata: b\n\n', data('a', 'b')],
    ['without a space', 'data:a\n\n', data('a')],
    ['only the first space goes', 'data:  a\n\n', data(' a')],
    ['bare data', 'data\n\ndata:\n\ndata: a\n\n', data('a')],
    ['comments and pings', ': OPENROUTER PROCESSING\n\n:\n\nevent: ping\n\ndata: a\n: x\n\n', data('a')],
    ['a BOM', '\ufeffdata: a\n\n', data('a')],
    ['a BOM before plain JSON', '\ufeff{"a":1}\n\n', data('{"a":1}')],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', data('a', 'b')],
    ['CR', 'data: a\r\rdata: b\r\r', data('a', 'b')],
    ['several lines', 'data: a\ndata: b\n\n', data('a\nb')],
    ['other fields', 'id: 1\nretry: 5\nfoo\ndata: a\n\n', data('a')],
    [
      'an event name',
      'event: error\ndata: a\n\ndata: b\n\n',
      [{ event: 'error', data: 'a', complete: true }, ...data('b')],
    ],
    ['an error field', 'error: {"code":500}\n\n', [{ event: 'error', data: '{"code":500}', complete: true }]],
    ['plain JSON', '{"a":1}\n\n', data('{"a":1}')],
    ['plain JSON over several lines', '{\n  "a": 1\n}\n\nb\n\n', data('{\n  "a": 1\n}')],
    ['capitals and spaces', 'DATA: a\n  data:b\n\n', data('a\nb')],
    ['no last blank line', 'data: a\n\ndata: b', [...data('a'), { event: '', data: 'b', complete: false }]],
    ['nothing', '', []],
  ])('%s', (_, text, expected) => {
    expect(parse([text])).toEqual(expected)
  })

  test('property: any cut of the bytes gives the same events', () => {
    const line = fc.oneof(
      fc.constantFrom(
        'data: ä😀',
        'data:{"x":1}',
        'data',
        ': comment',
        'event: error',
        '',
        'data: \u2028',
        'data: \ufeffä',
        'error: e',
        '{"x":',
        ' 1}',
      ),
      fc.string({ unit: 'grapheme', maxLength: 6 }).map((text) => `data: ${text.replaceAll(/[\r\n]/g, '')}`),
      // No UTF-8.
      fc.uint8Array({ min: 0x41, maxLength: 6 }),
    )
    const stream = fc.array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 20 })
    fc.assert(
      fc.property(stream, fc.array(fc.nat(200), { maxLength: 8 }), (lines, cuts) => {
        const bytes = Buffer.concat(lines.flat().map((part) => Buffer.from(part)))
        const places = [
          0,
          ...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b),
          bytes.length,
        ]
        const pieces = places.slice(1).map((to, index) => bytes.subarray(places[index], to))
        expect(parse(pieces)).toEqual(parse([bytes]))
        expect(parse([new TextDecoder().decode(bytes)])).toEqual(parse([bytes]))
      }),
      { numRuns: 500 },
    )
  })

  test('a line without end is refused, also in small pieces and over several data lines', () => {
    const encoder = new TextEncoder()
    const endless = (piece: string) => () => {
      const parser = new SseParser(() => undefined, 1_000)
      for (let n = 0; n < 2_000; n++) parser.push(encoder.encode(piece))
    }
    expect(endless('x')).toThrow(SseTooLargeError)
    expect(endless('data: x\n')).toThrow(SseTooLargeError)
    expect(endless('data: x\n\n')).not.toThrow()
  })
})

test('an event that no blank line ends is there when the next one begins', () => {
  const found: string[] = []
  const parser = new SseParser((event) => void found.push(event.data))
  const encoder = new TextEncoder()
  const data = (text: string): string[] => {
    parser.push(encoder.encode(text))
    return found.splice(0)
  }
  expect(data('data: {"a":1}\n')).toEqual([])
  expect(data('data: {"b":\n')).toEqual(['{"a":1}'])
  expect(data('data: {"c":2}}\n')).toEqual([])
  expect(data('\n')).toEqual(['{"b":\n{"c":2}}'])
})
